from council.doors.cli import main

main()
