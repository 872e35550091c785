"""Models of text: GPT-2, the Llama family, BERT, and what turns text into numbers and back."""
