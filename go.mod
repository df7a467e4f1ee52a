module github.com/sluice-go/sluice

go 1.26.0

require (
	github.com/benbjohnson/clock v1.3.5 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
