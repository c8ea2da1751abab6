"""When: stateless rules that name instants. Pure: no clock, no store, no loop without a bound."""
