"""What calib pipes store on a Doc: blocks of scores, the attributes that read them, and a view of them as arrays."""
