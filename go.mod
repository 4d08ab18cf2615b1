module zenmcp

go 1.26.0
