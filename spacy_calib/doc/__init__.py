"""What is stored on a Doc: blocks of scores, the attributes that read them, and a view of them."""
