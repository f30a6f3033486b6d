# mypy: disable-error-code="untyped-decorator, import-untyped, import-not-found, unused-ignore"
"""A small path tracer, compiled by numba: spheres, rounded cubes, cylinders and cones, and tori on a plane under three
area lights.

A ray that leaves a convex object cannot hit it again: `skip` names the object, and no ray needs an offset. A torus is
not convex; a ray that leaves it starts a little above its surface.
Objects are rows of an array: shape, centre (3), radius, cosine and sine of the rotation, metal (0 or 1), colour (3),
squared radius of the bounding sphere. Lights are rows: centre (3), normal (3), radiance (3), half of each edge (3, 3).
The constants of materials were fitted to original images: the ground, highlights and reflections on metal spheres.
"""

import math

from numba import njit, uint32

from bcn.data.clevr_like._sobol import fast, hash32, sample_pair, sobol_pair
from bcn.data.clevr_like.rules import TUBE

CUBE, SPHERE, CYLINDER, CONE, TORUS = 0, 1, 2, 3, 4
SKY, GROUND, MIXED = -2, -1, -3
FAR = 1e9
EDGE = (0.12, 0.0, 0.05, 0.05, 0.0)
"""radius of the rounded edges of each shape, in units of its size"""
BOUND = (math.sqrt(3.0) - (math.sqrt(3.0) - 1) * EDGE[CUBE], 1.0, math.sqrt(2.0), math.sqrt(2.0), 1.0)
"""radius of the bounding sphere of each shape, in units of its size"""
FEW_STEPS, STEPS = 48, 200
"""towards a surface; a ray can pass one side of a torus closely, and so slowly, and hit the other"""
SLANT = math.sqrt(5.0)
"""of a cone that is twice as high as its radius; its slope is the line 2 across + z = 1"""
CLEARANCE = 4e-3
"""above a torus, in units of its size, where rays that leave it start"""
BOUNCES = 3

GROUND_ALBEDO = 0.6
"""diffuse reflectance of the ground"""
AMBIENT = 0.136 / GROUND_ALBEDO
"""radiance of the environment on matte surfaces"""
EXTENT = 0.5
"""half the edge of a light"""
METAL_ROUGHNESS, COAT_ROUGHNESS = 0.05, 0.5
"""roughness (alpha of GGX) of metal and of the coat of rubber"""
MEAN_INDIRECT = 0.03
"""about the indirect radiance of a matte surface"""
COAT_WEIGHT, RUBBER_ALBEDO = 0.02, 0.8
"""weight of that coat, and diffuse reflectance of rubber"""

# Passing an array costs reference counting, half of the total time; an inlined call does not pay it.
inlined = njit(fastmath=True, nogil=True, error_model="numpy", inline="always")


@fast
def beyond_cone(across, z):  # type: ignore[no-untyped-def]
    """The way from the nearest point of a cone, without its rounded edges, outwards and up; 0, 0 within it."""
    edge = EDGE[CONE]
    bottom, top = edge - 1, 1 - edge * SLANT
    if z > bottom and 2 * across + z <= top:
        return 0.0, 0.0
    corner = (top - bottom) / 2
    # the nearest point of the slope, from its upper end (0) to its lower one (1), and of the bottom
    along = min(max((across * corner - (z - top) * (top - bottom)) / (corner * corner * 5), 0.0), 1.0)
    a, b = across - along * corner, z - top + along * (top - bottom)
    c, d = max(across - corner, 0.0), z - bottom
    if d < 0.0 and c * c + d * d < a * a + b * b:
        return c, d
    return a, b


@fast
def distance(shape, x, y, z):  # type: ignore[no-untyped-def]
    """Signed distance to a shape of radius 1 at the origin, other than a sphere."""
    if shape == CUBE:
        edge = EDGE[CUBE]
        a, b, c = abs(x) - 1 + edge, abs(y) - 1 + edge, abs(z) - 1 + edge
        inside = min(max(a, b, c), 0.0)
        a, b, c = max(a, 0.0), max(b, 0.0), max(c, 0.0)
        return math.sqrt(a * a + b * b + c * c) + inside - edge
    if shape == CONE:
        across = math.sqrt(x * x + y * y)
        a, b = beyond_cone(across, z)
        outside = math.sqrt(a * a + b * b)
        edge = EDGE[CONE]
        inside = max((2 * across + z - 1) / SLANT + edge, -1 - z + edge)
        return (outside if outside > 0.0 else inside) - edge
    if shape == TORUS:
        a = math.sqrt(x * x + y * y) - 1 + TUBE
        return math.sqrt(a * a + z * z) - TUBE
    edge = EDGE[CYLINDER]
    a, b = math.sqrt(x * x + y * y) - 1 + edge, abs(z) - 1 + edge
    inside = min(max(a, b), 0.0)
    a, b = max(a, 0.0), max(b, 0.0)
    return math.sqrt(a * a + b * b) + inside - edge


@inlined
def intersect(objects, index, x, y, z, dx, dy, dz, start, end):  # type: ignore[no-untyped-def]
    """Distance at which a ray, inside the bounding sphere from `start` to `end`, hits the object; FAR if it misses."""
    shape = int(objects[index, 0])
    if shape == SPHERE:
        return start if start > 0.0 else FAR
    radius, cos, sin = objects[index, 4], objects[index, 5], objects[index, 6]
    scale = 1.0 / radius
    x, y, dx, dy = x * cos + y * sin, y * cos - x * sin, dx * cos + dy * sin, dy * cos - dx * sin
    x, y, z = x * scale, y * scale, z * scale
    t, end = max(start, 0.0) * scale, end * scale
    for _ in range(STEPS if shape == TORUS else FEW_STEPS):
        step = distance(shape, x + t * dx, y + t * dy, z + t * dz)
        if step < 1e-3:
            return t * radius
        t += step
        if t > end:
            break
    return FAR


@inlined
def nearest(objects, skip, ox, oy, oz, dx, dy, dz, far, any_will_do):  # type: ignore[no-untyped-def]
    """The nearest hit of a ray within `far`, and its distance: the index of an object, GROUND or SKY."""
    found = SKY
    if dz < 0.0 and skip != GROUND and -oz < far * -dz:
        found, far = GROUND, -oz / dz
    for index in range(len(objects)):
        x, y, z = ox - objects[index, 1], oy - objects[index, 2], oz - objects[index, 3]
        middle = -(x * dx + y * dy + z * dz)
        half = middle * middle - (x * x + y * y + z * z) + objects[index, 11]  # of the chord, squared
        if half > 0.0 and index != skip:
            half = math.sqrt(half)
            if middle + half > 0.0 and middle - half < far:
                t = intersect(objects, index, x, y, z, dx, dy, dz, middle - half, middle + half)
                if t < far:
                    found, far = index, t
                    if any_will_do:
                        break
    return found, far


@inlined
def normal(objects, index, x, y, z):  # type: ignore[no-untyped-def]
    if index == GROUND:
        return 0.0, 0.0, 1.0
    shape, radius, cos, sin = int(objects[index, 0]), objects[index, 4], objects[index, 5], objects[index, 6]
    x, y, z = (x - objects[index, 1]) / radius, (y - objects[index, 2]) / radius, (z - objects[index, 3]) / radius
    if shape != SPHERE:
        x, y = x * cos + y * sin, y * cos - x * sin
        inner = 1.0 - EDGE[shape]
        if shape == CUBE:
            x = math.copysign(max(abs(x) - inner, 0.0), x)
            y = math.copysign(max(abs(y) - inner, 0.0), y)
            z = math.copysign(max(abs(z) - inner, 0.0), z)
        else:
            across = math.sqrt(x * x + y * y)
            if shape == CYLINDER:
                out = max(across - inner, 0.0)
                z = math.copysign(max(abs(z) - inner, 0.0), z)
            elif shape == CONE:
                out, z = beyond_cone(across, z)
            else:
                out = across - 1 + TUBE
            scale = out / across
            x, y = x * scale, y * scale
        x, y = x * cos - y * sin, y * cos + x * sin
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length


@fast
def orthonormal_basis(x, y, z):  # type: ignore[no-untyped-def]
    """Two unit vectors orthogonal to a unit vector and to each other (Duff et al. 2017)."""
    sign = 1.0 if z >= 0.0 else -1.0
    a = -1.0 / (sign + z)
    b = x * y * a
    return 1.0 + sign * x * x * a, sign * b, -sign * x, b, sign + y * y * a, -y


@fast
def ggx(alpha, nx, ny, nz, vx, vy, vz, lx, ly, lz):  # type: ignore[no-untyped-def]
    """Microfacet reflection (GGX) of white from l to v, times pi and the light's cosine."""
    hx, hy, hz = vx + lx, vy + ly, vz + lz
    length = math.sqrt(hx * hx + hy * hy + hz * hz)
    nh = (nx * hx + ny * hy + nz * hz) / length
    nl = max(nx * lx + ny * ly + nz * lz, 1e-4)
    nv = max(nx * vx + ny * vy + nz * vz, 1e-4)
    square = alpha * alpha
    lobe = nh * nh * (square - 1.0) + 1.0
    shade = nl * math.sqrt(nv * nv * (1 - square) + square) + nv * math.sqrt(nl * nl * (1 - square) + square)
    return square / (lobe * lobe) * 0.5 / shade * nl


@fast
def environment(dx, dy, dz):  # type: ignore[no-untyped-def]
    """The environment that metal reflects: dark, with a grey wall opposite the camera and a glow overhead."""
    flat = math.sqrt(dx * dx + dy * dy) + 1e-6
    wall = min(max((-0.7545 * dx + 0.6563 * dy) / flat * 3 - 1.5, 0.0), 1.0) * min(max((0.75 - dz) * 5, 0.0), 1.0)
    return 0.02 + 0.1 * wall + 0.12 * max(dz - 0.85, 0.0) / 0.15


@inlined
def trace(objects, lights, ox, oy, oz, dx, dy, dz, key, sample):  # type: ignore[no-untyped-def]
    """Radiance at o from the unit direction d in red, green and blue: direct, then indirect.

    And the first surface, MIXED unless it is matte, with its normal.
    """
    red, green, blue = 0.0, 0.0, 0.0
    indirect_r, indirect_g, indirect_b = 0.0, 0.0, 0.0
    where, wx, wy, wz = MIXED, 0.0, 0.0, 0.0
    throughput_r, throughput_g, throughput_b = 1.0, 1.0, 1.0
    skip, specular = SKY, True  # specular: the path has hit nothing but metal so far
    for bounce in range(BOUNCES):
        index, t = nearest(objects, skip, ox, oy, oz, dx, dy, dz, FAR, False)
        if index == SKY:
            sky = environment(dx, dy, dz) if specular else AMBIENT
            if specular:
                red, green, blue = red + throughput_r * sky, green + throughput_g * sky, blue + throughput_b * sky
            else:
                indirect_r, indirect_g, indirect_b = (
                    indirect_r + throughput_r * sky,
                    indirect_g + throughput_g * sky,
                    indirect_b + throughput_b * sky,
                )
            break
        x, y, z = ox + t * dx, oy + t * dy, oz + t * dz
        nx, ny, nz = normal(objects, index, x, y, z)
        leaves, metal = index, False
        r, g, b = GROUND_ALBEDO, GROUND_ALBEDO, GROUND_ALBEDO
        if index >= 0:
            metal = objects[index, 7] > 0.5
            scale = 1.0 if metal else RUBBER_ALBEDO
            r, g, b = objects[index, 8] * scale, objects[index, 9] * scale, objects[index, 10] * scale
            if int(objects[index, 0]) == TORUS:
                above = CLEARANCE * objects[index, 4]
                leaves, x, y, z = SKY, x + above * nx, y + above * ny, z + above * nz

        if bounce == 0 and not metal:
            where, wx, wy, wz = index, nx, ny, nz

        # Direct light: from every light where the path is specular, later from one chosen at random.
        # No caustics: they are noise.
        first, last, weight = 0, len(lights), 1.0
        if not specular:
            first = min(int(sample_pair(key, False, 20 + bounce, sample)[0] * len(lights)), len(lights) - 1)
            last, weight = first + 1, float(len(lights))
        if metal and not specular:
            last = first
        for number in range(first, last):
            u, v = sample_pair(key, specular, 4 * bounce + number, sample)
            u, v = 2 * u - 1, 2 * v - 1
            ax, ay, az = lights[number, 3], lights[number, 4], lights[number, 5]
            lx = lights[number, 0] + u * lights[number, 9] + v * lights[number, 12] - x
            ly = lights[number, 1] + u * lights[number, 10] + v * lights[number, 13] - y
            lz = lights[number, 2] + u * lights[number, 11] + v * lights[number, 14] - z
            square = lx * lx + ly * ly + lz * lz
            length = math.sqrt(square)
            lx, ly, lz = lx / length, ly / length, lz / length
            cosine = nx * lx + ny * ly + nz * lz
            facing = -(lx * ax + ly * ay + lz * az)
            if cosine <= 0.0 or facing <= 0.0 or nearest(objects, leaves, x, y, z, lx, ly, lz, length, True)[0] >= 0:
                continue
            power = weight * facing / square
            flat, shine = cosine, 0.0
            if metal:
                flat = ggx(METAL_ROUGHNESS, nx, ny, nz, -dx, -dy, -dz, lx, ly, lz)
            elif index >= 0:
                shine = COAT_WEIGHT * ggx(COAT_ROUGHNESS, nx, ny, nz, -dx, -dy, -dz, lx, ly, lz)
            light_r = throughput_r * (r * flat + shine) * power * lights[number, 6]
            light_g = throughput_g * (g * flat + shine) * power * lights[number, 7]
            light_b = throughput_b * (b * flat + shine) * power * lights[number, 8]
            if specular:
                red, green, blue = red + light_r, green + light_g, blue + light_b
            else:
                indirect_r, indirect_g, indirect_b = indirect_r + light_r, indirect_g + light_g, indirect_b + light_b

        # The next direction: GGX indirect the reflection for metal, cosine-weighted otherwise.
        u, v = sample_pair(key, specular, 12 + bounce, sample)
        sx, sy, sz, tx, ty, tz = orthonormal_basis(nx, ny, nz)
        height = math.sqrt((1 - u) / (1 + (METAL_ROUGHNESS * METAL_ROUGHNESS - 1) * u)) if metal else math.sqrt(1 - u)
        across, angle = math.sqrt(1 - height * height), 2 * math.pi * v
        p, q = across * math.cos(angle), across * math.sin(angle)
        hx, hy, hz = p * sx + q * tx + height * nx, p * sy + q * ty + height * ny, p * sz + q * tz + height * nz
        if metal:
            dot = 2 * (dx * hx + dy * hy + dz * hz)
            hx, hy, hz = dx - dot * hx, dy - dot * hy, dz - dot * hz
            if hx * nx + hy * ny + hz * nz <= 0.0:
                break
        else:
            specular = False
        dx, dy, dz = hx, hy, hz
        throughput_r, throughput_g, throughput_b = throughput_r * r, throughput_g * g, throughput_b * b
        ox, oy, oz, skip = x, y, z, leaves
    return red, green, blue, indirect_r, indirect_g, indirect_b, where, wx, wy, wz


@fast
def render(image, indirect, surface, objects, lights, eye, right, up, forward, focal, samples, few, error, seed):  # type: ignore[no-untyped-def]
    """Fill `image` (rows, columns, 3) with direct light. A pixel whose standard error is below `error` is finished.

    Indirect light on matte surfaces goes into `indirect` (rows, columns, 3), and the surface with its normal into
    `surface` (rows, columns, 4), for `add_indirect`.
    """
    rows, columns = image.shape[0], image.shape[1]
    for row in range(rows):
        for column in range(columns):
            key = hash32(uint32(seed) ^ hash32(uint32(row * columns + column)))
            red, green, blue, total, squares = 0.0, 0.0, 0.0, 0.0, 0.0
            red_a, green_a, blue_a = 0.0, 0.0, 0.0
            count, seen = 0, MIXED
            while count < samples:
                u, v = sobol_pair(key, 30, count)
                a = (column + u - columns / 2) / columns / focal
                b = (rows / 2 - row - v) / rows / focal * 2 / 3
                dx = forward[0] + a * right[0] + b * up[0]
                dy = forward[1] + a * right[1] + b * up[1]
                dz = forward[2] + a * right[2] + b * up[2]
                length = math.sqrt(dx * dx + dy * dy + dz * dz)
                r, g, b, r_a, g_a, b_a, where, nx, ny, nz = trace(
                    objects, lights, eye[0], eye[1], eye[2], dx / length, dy / length, dz / length, key, count
                )
                seen = where if count == 0 or seen == where else MIXED
                red_a, green_a, blue_a = red_a + r_a, green_a + g_a, blue_a + b_a
                red, green, blue = red + r, green + g, blue + b
                rest = MEAN_INDIRECT if where != MIXED else (r_a + g_a + b_a) / 3
                value = math.sqrt((r + g + b) / 3 + rest)  # about the perceived brightness
                total, squares, count = total + value, squares + value * value, count + 1
                if count & (few - 1) == 0:
                    mean = total / count
                    if squares / count - mean * mean < error * error * count:
                        break
            image[row, column, 0], indirect[row, column, 0] = red / count, red_a / count
            image[row, column, 1], indirect[row, column, 1] = green / count, green_a / count
            image[row, column, 2], indirect[row, column, 2] = blue / count, blue_a / count
            surface[row, column, 0], surface[row, column, 1] = seen, nx
            surface[row, column, 2], surface[row, column, 3] = ny, nz


@fast
def survey(number, depth, objects, eye, right, up, forward, focal):  # type: ignore[no-untyped-def]
    """What is at the centre of each pixel: `number` of the object, GROUND or SKY, and its `depth` along `forward`."""
    rows, columns = number.shape
    for row in range(rows):
        for column in range(columns):
            a = (column + 0.5 - columns / 2) / columns / focal
            b = (rows / 2 - row - 0.5) / rows / focal * 2 / 3
            dx = forward[0] + a * right[0] + b * up[0]
            dy = forward[1] + a * right[1] + b * up[1]
            dz = forward[2] + a * right[2] + b * up[2]
            length = math.sqrt(dx * dx + dy * dy + dz * dz)
            index, t = nearest(objects, SKY, eye[0], eye[1], eye[2], dx / length, dy / length, dz / length, FAR, False)
            number[row, column], depth[row, column] = index, t / length


@fast
def add_indirect(image, indirect, surface, reach):  # type: ignore[no-untyped-def]
    """Add the indirect light, which is smooth: its mean over neighbouring pixels of the same matte surface."""
    rows, columns = image.shape[0], image.shape[1]
    for row in range(rows):
        for column in range(columns):
            seen = surface[row, column, 0]
            near = reach if seen != MIXED else 0
            red, green, blue, count = 0.0, 0.0, 0.0, 0
            for y in range(max(row - near, 0), min(row + near + 1, rows)):
                for x in range(max(column - near, 0), min(column + near + 1, columns)):
                    alike = 0.0
                    for axis in range(1, 4):
                        alike += surface[row, column, axis] * surface[y, x, axis]
                    if near == 0 or (surface[y, x, 0] == seen and alike > 0.9):
                        red, green, blue = red + indirect[y, x, 0], green + indirect[y, x, 1], blue + indirect[y, x, 2]
                        count += 1
            image[row, column, 0] += red / count
            image[row, column, 1] += green / count
            image[row, column, 2] += blue / count
