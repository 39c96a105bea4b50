"""What commands print, by kind of document."""
