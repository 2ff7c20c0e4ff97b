"""What all figure scripts share: finding and running them, measured data on disk, claims, statistics, output."""
