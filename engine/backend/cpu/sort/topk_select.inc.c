/* Included once per kind of entry E; BEFORE(a, b) orders two pointers. The selection and the sort of libstdc++, exchange by
 * exchange. */
static inline void NAME(swap)(E *a, E *b)
{
    E x = *a;
    *a = *b, *b = x;
}

/* ---- heaps: the worst on top ---- */
static void NAME(sift)(E *heap, int64_t hole, int64_t n, E value)
{
    int64_t top = hole, child = hole;
    while (child < (n - 1) / 2) {
        child = 2 * (child + 1);
        child -= BEFORE(&heap[child], &heap[child - 1]);
        heap[hole] = heap[child], hole = child;
    }
    if ((n & 1) == 0 && child == (n - 2) / 2) child = 2 * child + 1, heap[hole] = heap[child], hole = child;
    for (int64_t parent = (hole - 1) / 2; hole > top && BEFORE(&heap[parent], &value); parent = (hole - 1) / 2)
        heap[hole] = heap[parent], hole = parent;
    heap[hole] = value;
}
static void NAME(make_heap)(E *heap, int64_t n)
{
    for (int64_t parent = (n - 2) / 2; n > 1 && parent >= 0; parent--) NAME(sift)(heap, parent, n, heap[parent]);
}
static void NAME(sort_heap)(E *heap, int64_t n)
{
    while (n-- > 1) {
        E last = heap[n];
        heap[n] = heap[0];
        NAME(sift)(heap, 0, n, last);
    }
}
static void NAME(heap_select)(E *first, int64_t k, int64_t n)
{
    NAME(make_heap)(first, k);
    for (int64_t i = k; i < n; i++)
        if (BEFORE(&first[i], first)) {
            E value = first[i];
            first[i] = first[0];
            NAME(sift)(first, 0, k, value);
        }
}

/* ---- quicksort's parts ---- */
static void NAME(insert_unguarded)(E *last)
{
    E value = *last;
    for (; BEFORE(&value, last - 1); last--) *last = last[-1];
    *last = value;
}
static void NAME(insertion_sort)(E *first, E *last)
{
    for (E *i = first + 1; first != last && i < last; i++)
        if (BEFORE(i, first)) {
            E value = *i;
            for (E *j = i; j > first; j--) *j = j[-1];
            *first = value;
        } else NAME(insert_unguarded)(i);
}
static E *NAME(cut)(E *first, E *last) /* around the median of three, which goes to first */
{
    E *a = first + 1, *b = first + (last - first) / 2, *c = last - 1, *pivot = first;
    if (BEFORE(a, b)) NAME(swap)(first, BEFORE(b, c) ? b : BEFORE(a, c) ? c : a);
    else NAME(swap)(first, BEFORE(a, c) ? a : BEFORE(b, c) ? c : b);
    for (first++;; first++) {
        while (BEFORE(first, pivot)) first++;
        last--;
        while (BEFORE(pivot, last)) last--;
        if (first >= last) return first;
        NAME(swap)(first, last);
    }
}
static void NAME(nth_element)(E *first, E *nth, E *last)
{
    int depth = twice_log(last - first);
    while (last - first > 3) {
        if (depth-- == 0) {
            NAME(heap_select)(first, nth + 1 - first, last - first);
            return NAME(swap)(first, nth);
        }
        E *middle = NAME(cut)(first, last);
        *(middle <= nth ? &first : &last) = middle;
    }
    NAME(insertion_sort)(first, last);
}
static void NAME(quicksort)(E *first, E *last, int depth) /* down to pieces of THRESHOLD */
{
    while (last - first > THRESHOLD) {
        if (depth-- == 0) {
            NAME(make_heap)(first, last - first);
            return NAME(sort_heap)(first, last - first);
        }
        E *middle = NAME(cut)(first, last);
        NAME(quicksort)(middle, last, depth);
        last = middle;
    }
}
static void NAME(std_sort)(E *first, E *last)
{
    if (first == last) return;
    NAME(quicksort)(first, last, twice_log(last - first));
    E *guarded = last - first > THRESHOLD ? first + THRESHOLD : last;
    NAME(insertion_sort)(first, guarded);
    for (E *i = guarded; i < last; i++) NAME(insert_unguarded)(i);
}
/* PyTorch's topk, unless few of many are wanted. */
static void NAME(choose)(E *entries, int64_t n, int64_t k, bool ordered)
{
    NAME(nth_element)(entries, entries + k - 1, entries + n);
    if (ordered) NAME(std_sort)(entries, entries + k - 1);
}
#undef E
#undef NAME
#undef BEFORE
