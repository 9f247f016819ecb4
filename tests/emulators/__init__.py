"""The remote recognisers, emulated: real servers in processes of their own, with faults on demand."""
