"""Write the pages and plots that show the results."""
