package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// Bounds of a request: who sends more is no client of ours.
const (
	maxWords = 64
	maxWord  = 1 << 20
)

// server keeps values in memory, and speaks enough of RESP, Redis's protocol, for SET, GET, DEL
// and PING.
type server struct {
	mu     sync.Mutex // guards values
	values map[string]string
}

// serve answers one connection.
func (s *server) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	r, w := bufio.NewReader(c), bufio.NewWriter(c)
	for {
		words, err := readRequest(r)
		if err != nil {
			return
		}
		s.answer(w, words)
		if r.Buffered() == 0 && w.Flush() != nil { // else more requests have come: one answer for all
			return
		}
	}
}

func (s *server) answer(w *bufio.Writer, words []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch verb := strings.ToUpper(words[0]); {
	case verb == "PING":
		fmt.Fprint(w, "+PONG\r\n")
	case verb == "SET" && len(words) >= 3:
		s.values[words[1]] = words[2]
		fmt.Fprint(w, "+OK\r\n")
	case verb == "GET" && len(words) == 2:
		value, there := s.values[words[1]]
		if !there {
			fmt.Fprint(w, "$-1\r\n")
			return
		}
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(value), value)
	case verb == "DEL" && len(words) == 2:
		_, there := s.values[words[1]]
		delete(s.values, words[1])
		fmt.Fprintf(w, ":%d\r\n", map[bool]int{true: 1}[there])
	default:
		fmt.Fprintf(w, "-ERR unknown command %.20q\r\n", words[0])
	}
}

var errProtocol = errors.New("no request of RESP")

// readRequest reads an array of strings: *N, and for each $LENGTH and its bytes.
func readRequest(r *bufio.Reader) ([]string, error) {
	n, err := readNumber(r, '*', maxWords)
	if err != nil || n == 0 {
		return nil, errors.Join(errProtocol, err)
	}
	words := make([]string, n)
	for i := range words {
		length, err := readNumber(r, '$', maxWord)
		if err != nil {
			return nil, err
		}
		b := make([]byte, length+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		words[i] = string(b[:length])
	}
	return words, nil
}

// readNumber reads a line of a mark and a number, 0 to most.
func readNumber(r *bufio.Reader, mark byte, most int) (int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	text := strings.TrimSuffix(string(line), "\r\n")
	if len(text) < 2 || text[0] != mark {
		return 0, errProtocol
	}
	n, err := strconv.Atoi(text[1:])
	if err != nil || n < 0 || n > most {
		return 0, errProtocol
	}
	return n, nil
}
