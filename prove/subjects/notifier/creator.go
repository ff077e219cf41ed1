// creator create GOROUTINES SECONDS: as creator.c. How it synchronizes a file is in a file of its own.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	count, err := strconv.Atoi(os.Args[2])
	check(err)
	seconds, err := strconv.ParseFloat(os.Args[3], 64)
	check(err)
	var done atomic.Int64
	var over atomic.Bool
	var all sync.WaitGroup
	begun := time.Now()
	for i := 0; i < count; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			record := make([]byte, 1024)
			for number := 0; !over.Load(); number++ {
				name := fmt.Sprintf("g-%d-%d-%d", os.Getpid(), i, number)
				file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0600)
				check(err)
				_, err = file.Write(record)
				check(err)
				check(synchronize(file))
				check(file.Close())
				done.Add(1)
			}
		}()
	}
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	fmt.Printf("%.3f\n", float64(done.Load())/time.Since(begun).Seconds())
	over.Store(true)
	all.Wait()
}
