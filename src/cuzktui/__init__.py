"""The console half: it draws, takes keys and sends requests; it never imports a driver or a compiler."""
