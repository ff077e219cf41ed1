// A server of net/http, which makes the calls of a request in goroutines and waits for them.
//
// Arguments: port, port of the back end, calls of a request.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// Result is the body of an answer, or what went wrong.
type Result struct {
	body string
	err  error
}

func get(client *http.Client, target string, trace string) Result {
	call, err := http.NewRequest("GET", target, nil)
	if err != nil {
		return Result{err: err}
	}
	if trace != "" {
		call.Header.Set("traceparent", trace)
	}
	answer, err := client.Do(call)
	if err != nil {
		return Result{err: err}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return Result{string(body), err}
}

func main() {
	backEnd := "http://127.0.0.1:" + os.Args[2]
	calls, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	// As many idle connections as are used at once; of itself it keeps two.
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	serve := func(answer http.ResponseWriter, request *http.Request) {
		results := make(chan Result, calls)
		for call := 0; call < calls; call++ {
			target := fmt.Sprintf("%s%s/%d", backEnd, request.URL.Path, call)
			go func() { results <- get(client, target, request.Header.Get("traceparent")) }()
		}
		name := strings.TrimPrefix(request.URL.Path, "/")
		for call := 0; call < calls; call++ {
			if result := <-results; result.err != nil || result.body != name {
				http.Error(answer, fmt.Sprint(result), http.StatusInternalServerError)
				return
			}
		}
		fmt.Fprint(answer, name)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(serve)))
}
