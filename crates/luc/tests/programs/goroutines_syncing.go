// Goroutines that write and synchronize a file each for some milliseconds; prints as `notified crowd` does.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	milliseconds, _ := strconv.Atoi(os.Args[2])
	end := time.Now().Add(time.Duration(milliseconds) * time.Millisecond)
	var calls, failed atomic.Int64
	var all sync.WaitGroup
	for i := 0; i < count; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			file, err := os.Create(fmt.Sprintf("go-%d-%d", os.Getpid(), i))
			if err != nil {
				panic(err)
			}
			for time.Now().Before(end) {
				file.WriteAt([]byte("x"), calls.Add(1)%8192)
				if err := file.Sync(); err != nil {
					fmt.Fprintln(os.Stderr, err)
					failed.Add(1)
				}
			}
			file.Close()
		}()
	}
	all.Wait()
	fmt.Printf("calls %d slow 0 failed %d longest_ms 0\n", calls.Load(), failed.Load())
}
