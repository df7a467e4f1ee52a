package grpcpace_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	grpcpace "github.com/sluice-go/sluice/transport/grpc"
)

// A connection whose RPCs leave at 20 a second. One that cannot leave before its deadline
// is told so at once.
func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(listener)
	defer server.Stop()

	pace, err := shaper.New(scheduler.PerSecond(20))
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient(listener.Addr().String(), append(
		grpcpace.New(pace).DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	client := healthpb.NewHealthClient(conn)

	begin := time.Now()
	for range 3 {
		if _, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("the third left after 90 ms or more:", time.Since(begin) >= 90*time.Millisecond)

	pace.HoldUntil(time.Now().Add(time.Hour)) // as a refusal of the server does
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = client.Check(ctx, &healthpb.HealthCheckRequest{})
	var notSent *transport.Error
	if errors.As(err, &notSent) {
		fmt.Println(status.Code(err), "not sent, come back in", notSent.Wait.Round(time.Minute))
	}

	// Output:
	// the third left after 90 ms or more: true
	// DeadlineExceeded not sent, come back in 1h0m0s
}
