"""A page in the browser to assess experts, watch the answer move, and defend it (``opinionpool open``)."""
