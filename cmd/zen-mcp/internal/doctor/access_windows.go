package doctor

// writable knows nothing here: access lists say who may write, and only trying
// tells.
func writable(string) error { return nil }
