package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A provider is a stub of one: it meters tokens once they are known, and requests.
type provider struct {
	mu sync.Mutex
	// Guarded by mu:
	tokens, requests *scheduler.GCRA
	sizes            *rand.Rand
	answered         int
	refused          int
	used             int
}

// slack is what a busy machine may deliver closer together than it left, in tokens and requests.
const slack = 10

func openProvider() (p *provider, url string, stop func(), err error) {
	p = &provider{
		tokens:   scheduler.Must(scheduler.NewGCRA(scheduler.PerSecond(tokensPerSecond), burst)),
		requests: scheduler.Must(scheduler.NewGCRA(scheduler.PerSecond(requestsPerSecond), atATime+slack)),
		sizes:    rand.New(rand.NewPCG(1, 2)),
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /v1/chat/completions", p)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go srv.Serve(l)
	return p, "http://" + l.Addr().String(), func() { srv.Close() }, nil
}

func (p *provider) score() (answered, refused, tokens int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered, p.refused, p.used
}

func (p *provider) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var question completion
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, 1<<16)).Decode(&question); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	size, wait := p.admit(question.MaxTokens)
	if wait > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(math.Ceil(wait.Seconds()))))
		http.Error(w, "rate limit reached", http.StatusTooManyRequests)
		return
	}
	cost := usage{PromptTokens: prompt, CompletionTokens: size, TotalTokens: prompt + size}
	if question.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Because ...\"}}]}\n\n")
			time.Sleep(10 * time.Millisecond)
		}
		piece, _ := json.Marshal(answer{Choices: []any{}, Usage: &cost})
		fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", piece)
		return
	}
	time.Sleep(30 * time.Millisecond)
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer{Choices: []any{map[string]any{"message": message{"assistant", "Because ..."}}}, Usage: &cost})
}

// admit meters a question, with what its answer will take, and returns that; or how long to wait.
func (p *provider) admit(most int) (size int, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Log-normal, of which the mean is 200: with the prompt a quarter of the estimate.
	size = min(int(math.Exp(p.sizes.NormFloat64()*0.6+math.Log(200)-0.18)), most)
	now, cost := time.Now(), int64(prompt+size)
	if wait = max(p.requests.Next(now, 0, 1).Sub(now), p.tokens.Next(now, 0, cost).Sub(now)); wait > 0 {
		p.refused++
		return 0, wait
	}
	p.requests.Commit(now, now, 1)
	p.tokens.Commit(now, now, cost)
	p.answered++
	p.used += int(cost)
	return size, 0
}
