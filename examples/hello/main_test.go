package main

func Example() {
	main()
	// Output:
	// send one
	// send two
	// send three
}
