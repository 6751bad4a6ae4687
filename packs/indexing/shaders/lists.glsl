// Lists of the updates of each place: a head is the number of an update plus 1, or 0, and so is what comes next. Their order
// is that in which they came, so they are sorted before they are added.
#ifndef LISTS_GLSL
#define LISTS_GLSL

// Bits of a head: several updates go to the place; they are so many that the head is a number among the long lists.
const uint SHARED_PLACE = 1u << 31;
const uint LONG_PLACE = 1u << 30;

// Words of the buffer of long lists: how many there are, then for each its place, its length, and where its updates begin
// among those of all.
#define LONG_PLACE_AT(id) (1u + (id) * 3u)
#define LONG_LENGTH_AT(id) (2u + (id) * 3u)
#define LONG_FIRST_AT(id) (3u + (id) * 3u)
#endif
