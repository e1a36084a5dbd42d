from aj.main import console

console()
