package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// A completion is a question, as the provider wants it.
type completion struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	MaxTokens     int       `json:"max_tokens"`
	Stream        bool      `json:"stream,omitempty"`
	StreamOptions *options  `json:"stream_options,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type options struct {
	IncludeUsage bool `json:"include_usage"`
}

// An answer is the part of an answer, or of a piece of a stream, that tells what it has cost.
type answer struct {
	Choices []any  `json:"choices"`
	Usage   *usage `json:"usage"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// mostAnswer bounds what is read of an answer.
const mostAnswer = 1 << 20

// complete asks a question and returns how many tokens it took.
func complete(ctx context.Context, client *http.Client, url string, stream bool) (tokens int, err error) {
	question := completion{
		Model: "small", Messages: []message{{"user", "Why does water boil later under pressure?"}}, MaxTokens: maxTokens, Stream: stream,
	}
	if stream {
		question.StreamOptions = &options{IncludeUsage: true}
	}
	body, err := json.Marshal(question)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the provider says %s", resp.Status)
	}
	var last answer
	limited := io.LimitReader(resp.Body, mostAnswer)
	if stream {
		err = lastEvent(limited, &last)
	} else {
		err = json.NewDecoder(limited).Decode(&last)
	}
	switch {
	case err != nil:
		return 0, err
	case last.Usage == nil:
		return 0, errors.New("the answer does not tell what it has cost")
	}
	return last.Usage.TotalTokens, nil
}

// lastEvent reads a stream of events to its end; the last one but the mark of the end counts.
func lastEvent(r io.Reader, last *answer) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		*last = answer{}
		if err := json.Unmarshal(data, last); err != nil {
			return err
		}
	}
	return lines.Err()
}
