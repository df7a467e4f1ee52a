package sluice_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Documentation lists a constructor under the type that it makes. That a variable of the
// package is declared with the type error is enough for it not to.
func TestDocListsConstructorsWithTheirTypes(t *testing.T) {
	for _, dir := range []string{
		"scheduler", "scheduler/redis", "shaper", "queue", "transport", "transport/feedback", "transport/grpc",
	} {
		files := token.NewFileSet()
		names, err := filepath.Glob(dir + "/*.go")
		require.NoError(t, err)
		var parsed []*ast.File
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
			require.NoError(t, err)
			parsed = append(parsed, file)
		}
		pkg, err := doc.NewFromFiles(files, parsed, "github.com/sluice-go/sluice/"+dir, doc.AllDecls) // as go doc does
		require.NoError(t, err)
		assert.NotEmpty(t, pkg.Types, dir)
		for _, f := range pkg.Funcs {
			if regexp.MustCompile("^(Must)?New").MatchString(f.Name) {
				assert.True(t, makesForeign(f.Decl), "%s %s", dir, f.Name)
			}
		}
	}
}

// makesForeign reports whether a function returns a type of another package, which has no place
// in this one's documentation.
func makesForeign(f *ast.FuncDecl) bool {
	made := f.Type.Results.List[0].Type
	if pointer, ok := made.(*ast.StarExpr); ok {
		made = pointer.X
	}
	if generic, ok := made.(*ast.IndexExpr); ok {
		made = generic.X
	}
	_, foreign := made.(*ast.SelectorExpr)
	return foreign
}
