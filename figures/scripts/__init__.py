"""What all figure scripts share: finding and running scripts, cached data, claims, statistics, output."""
