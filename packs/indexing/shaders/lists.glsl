// Lists of the updates of GROUP neighbouring places: a head is the number of an update plus 1, or 0, and what comes next is
// such a number times GROUP, plus which of the places the update goes to. Their order is that in which they came.
#ifndef LISTS_GLSL
#define LISTS_GLSL

// The head of a crowded group, whose list is too long.
const uint CROWD = 0xffffffffu;
#endif
