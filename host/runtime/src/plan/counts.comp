#version 450
// Workgroup counts as a step wants them, no more than the most that its plan allows.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer Wanted { uint wanted[]; };
layout(set = 0, binding = 1) writeonly buffer Counts { uint counts[]; };
layout(push_constant) uniform Push { uint most[3]; };

void main() {
    for (uint i = 0; i < 3; ++i) counts[i] = min(wanted[i], most[i]);
}
