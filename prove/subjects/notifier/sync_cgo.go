package main

// #include <unistd.h>
import "C"

import "os"

// synchronize calls the C library, in whose place LUC's library can be.
func synchronize(file *os.File) error {
	if result, err := C.fsync(C.int(file.Fd())); result != 0 {
		return err
	}
	return nil
}
