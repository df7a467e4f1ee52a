package main

import (
	"fmt"
	"log"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	grpcpace "github.com/sluice-go/sluice/transport/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func main() {
	s, err := shaper.New(scheduler.PerSecond(10))
	if err != nil {
		log.Fatal(err)
	}
	options := append(grpcpace.New(s).DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient("127.0.0.1:1", options...)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("left:", conn.Close())
}
