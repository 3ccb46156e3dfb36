"""Operations on threads: start, fork, follow, answer, verify, list, archive, remove."""
