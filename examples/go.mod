module github.com/sluice-go/sluice/examples

go 1.26.0

require (
	github.com/benbjohnson/clock v1.3.5
	github.com/schollz/progressbar/v3 v3.19.1
	github.com/sluice-go/sluice v0.1.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/sync v0.25.0
	golang.org/x/term v0.48.0
)

require (
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/sluice-go/sluice => ../
