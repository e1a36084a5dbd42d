"""Jobs on this machine: plain processes under a supervisor of their own."""
