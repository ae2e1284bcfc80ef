"""Tables of the user's library to Arrow and back."""
