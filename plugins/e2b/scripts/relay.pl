# Arguments: threadbox-relay MARK SERVER PORT. Connects to a port inside and copies both ways; each direction ends by itself.
# In Perl, which every Debian has.
use Socket qw(:DEFAULT pack_sockaddr_in6 IN6ADDR_LOOPBACK);
my (undef, $mark, undef, $port) = @ARGV;
$| = 1;
sub report { syswrite(STDOUT, "\1tb:$mark:$_[0]\2"); }
sub copy {
  my ($from, $to) = @_;
  while (my $got = sysread($from, my $bytes, 65536)) {
    for (my $at = 0; $at < $got; ) { my $put = syswrite($to, $bytes, $got - $at, $at) or return; $at += $put; }
  }
}
my $socket;
for my $address (pack_sockaddr_in($port, INADDR_LOOPBACK), pack_sockaddr_in6($port, IN6ADDR_LOOPBACK)) {
  my $family = sockaddr_family($address);
  socket($socket, $family, SOCK_STREAM, 0) or next;
  if (connect($socket, $address)) { report("open"); last; }
  close($socket); $socket = undef;
}
if (!$socket) { report("refused"); sysread(STDIN, my $byte, 1); exit; }
$SIG{PIPE} = "IGNORE";
if (my $sender = fork) {
  copy($socket, *STDOUT);
  report("end");
  waitpid($sender, 0);
} else {
  copy(*STDIN, $socket);
  shutdown($socket, 1);
}
