package rawnet_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/rawnet"
)

// A server echoes what a client of another node sends.
func Example() {
	eps, closeAll, err := mcdtest.Start(2, mcdtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()

	server, err := rawnet.Open(eps[1], rawnet.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	l, err := server.Listen("echo")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(c, c)
		_ = c.Close()
	}()

	client, err := rawnet.Open(eps[0], rawnet.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	c, err := client.Dial("rawlane", "1:echo")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(c, "hello")
	_ = c.(*rawnet.Conn).CloseWrite()
	answer, err := io.ReadAll(c)
	fmt.Printf("%s from %v, %v\n", answer, c.RemoteAddr(), err)

	_, err = client.Dial("rawlane", "1:nobody")
	fmt.Println(err)
	// Output:
	// hello from 1:echo, <nil>
	// dial rawlane 1:nobody: connection refused: nobody listens for the service
}

// A web server and its client need nothing but the listener, and the dialer.
func ExampleNet_DialContext() {
	eps, closeAll, err := mcdtest.Start(2, mcdtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()
	var nets []*rawnet.Net
	for _, ep := range eps {
		n, err := rawnet.Open(ep, rawnet.Config{})
		if err != nil {
			log.Fatal(err)
		}
		defer n.Close()
		nets = append(nets, n)
	}

	l, err := nets[1].Listen("80")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "you asked for %s", r.URL.Path)
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()

	transport := &http.Transport{DialContext: nets[0].DialContext}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get("http://1/weather")
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	fmt.Println(string(body))
	// Output: you asked for /weather
}

// What a listener and a connection are to package net.
func ExampleNet_Listen() {
	eps, closeAll, err := mcdtest.Start(1, mcdtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()
	n, err := rawnet.Open(eps[0], rawnet.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()
	var l net.Listener
	if l, err = n.Listen("files"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr().Network(), l.Addr())
	// Output: rawlane 0:files
}

// A client may start before its server: DialWait connects as soon as somebody listens.
func ExampleNet_DialWait() {
	eps, closeAll, err := mcdtest.Start(2, mcdtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()
	client, err := rawnet.Open(eps[0], rawnet.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	connected := make(chan net.Conn)
	go func() {
		c, err := client.DialWait(context.Background(), "rawlane", "1:late")
		if err != nil {
			log.Fatal(err)
		}
		connected <- c
	}()
	server, err := rawnet.Open(eps[1], rawnet.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	if _, err := server.Listen("late"); err != nil {
		log.Fatal(err)
	}
	fmt.Println((<-connected).RemoteAddr())
	// Output: 1:late
}
