"""Scripts of pictures of what the toolkit has, outside the papers."""
