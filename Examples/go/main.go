// Command image-worker-example processes one image. Usage: go run . INPUT OUTPUT [PRESET]
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"example.com/image-worker-example/imageworkerv1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: go run . INPUT OUTPUT [PRESET]")
	}
	preset := "preview"
	if len(os.Args) > 3 {
		preset = os.Args[3]
	}
	if err := process(os.Args[1], os.Args[2], preset); err != nil {
		log.Fatal(err)
	}
}

func process(input, output, preset string) error {
	address := os.Getenv("IMAGE_WORKER")
	if address == "" {
		address = "127.0.0.1:50051"
	}
	connection, err := grpc.Dial(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	image, err := os.ReadFile(input)
	if err != nil {
		return err
	}
	stream, err := imageworkerv1.NewImageWorkerServiceClient(connection).ProcessImage(
		ctx, &imageworkerv1.ProcessImageRequest{Image: image, Preset: preset})
	if err != nil {
		return err
	}
	var result bytes.Buffer
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			// A call that fails leaves what is there.
			return os.WriteFile(output, result.Bytes(), 0o644)
		}
		if err != nil {
			return err
		}
		switch part := response.Part.(type) {
		case *imageworkerv1.ProcessImageResponse_Header:
			fmt.Printf("result: %s %dx%d\n", part.Header.Format, part.Header.Width, part.Header.Height)
		case *imageworkerv1.ProcessImageResponse_Chunk:
			result.Write(part.Chunk)
		case *imageworkerv1.ProcessImageResponse_Report:
			fmt.Println(part.Report)
		}
	}
}
