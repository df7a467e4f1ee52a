package clienttest

import (
	"context"
	"log"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-github/v89/github"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

var githubRepo = answer(http.StatusOK, isJSON, `{"id":1,"full_name":"octo/hello"}`)

// go-github takes the Transport by an option. Its own check for limits is switched off:
// it would turn calls away after a refusal that can as well wait in the line.
func Example_github() {
	url, stop := serving(githubRepo)
	defer stop()

	pace, err := shaper.New(scheduler.PerHour(5000))
	if err != nil {
		log.Fatal(err)
	}
	url += "/"
	client, err := github.NewClient(
		github.WithTransport(transport.New(nil, pace, transport.WithClassifier(feedback.GitHub))),
		github.WithDisableRateLimitCheck(),
		github.WithURLs(&url, nil), // leave out: GitHub's own
	)
	if err != nil {
		log.Fatal(err)
	}

	repo, _, err := client.Repositories.Get(context.Background(), "octo", "hello")
	if err != nil {
		log.Fatal(err)
	}
	report(repo.GetFullName(), err)

	// Output: octo/hello
}

func githubPlug(opts ...github.ClientOptionsFunc) plug {
	return func(t *testing.T, url string, rt http.RoundTripper) func(context.Context) error {
		url += "/"
		client, err := github.NewClient(append(opts, github.WithTransport(rt), github.WithURLs(&url, nil))...)
		require.NoError(t, err)
		return func(ctx context.Context) error {
			_, _, err := client.Repositories.Get(ctx, "octo", "hello")
			return err
		}
	}
}

// githubSpent refuses because the primary limit is used up. It says when it starts afresh.
func githubSpent(after time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// Points in time are whole seconds there: round up.
		reset := time.Now().Add(after + time.Second - 1).Unix()
		answer(http.StatusForbidden, isJSON, `{"message":"API rate limit exceeded"}`,
			"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strconv.FormatInt(reset, 10))(w, r)
	}
}

func TestGitHub(t *testing.T) {
	t.Parallel()
	subject{
		plug:        githubPlug(github.WithDisableRateLimitCheck()),
		accept:      githubRepo,
		refuse:      githubSpent(time.Second),
		classifier:  feedback.GitHub,
		hold:        time.Second,
		hidesCancel: true,
	}.check(t)
}

// A secondary limit is a 403 that leaves requests of the primary one.
func TestGitHubSecondary(t *testing.T) {
	t.Parallel()
	subject{
		plug:   githubPlug(github.WithDisableRateLimitCheck()),
		accept: githubRepo,
		refuse: answer(http.StatusForbidden, isJSON,
			`{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`,
			"Retry-After", "1", "X-RateLimit-Remaining", "4000"),
		classifier:  feedback.GitHub,
		hold:        time.Second,
		hidesCancel: true,
	}.check(t)
}

// With its own check go-github turns the next call away, and the line never hears of it.
func TestGitHubOwnCheck(t *testing.T) {
	t.Parallel()
	srv := serve(t, githubSpent(time.Hour), githubRepo, 1)
	w := &turns{shaper: exactly(t, interval)}
	call := githubPlug()(t, srv.url, transport.New(nil, w, transport.WithClassifier(nil)))

	var limited *github.RateLimitError
	require.ErrorAs(t, call(t.Context()), &limited)
	require.ErrorAs(t, call(t.Context()), &limited)
	require.EqualValues(t, 1, w.asked.Load())
}
