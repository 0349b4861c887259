// The color space in which palettes are chosen and errors diffused.
//
// Sources: ISO/IEC 18181-1, annex L.2 (XYB, its matrices and its bias); IEC 61966-2-1 (sRGB).

#include "palette_private.h"

#pragma STDC FP_CONTRACT OFF

/// Linear light, 0 to 65535, of the levels of sRGB.
static const uint16_t light[256] = {
    0,     20,    40,    60,    80,    99,    119,   139,   159,   179,   199,   219,   241,   264,   288,   313,
    340,   367,   396,   427,   458,   491,   526,   562,   599,   637,   677,   718,   761,   805,   851,   898,
    947,   997,   1048,  1101,  1156,  1212,  1270,  1330,  1391,  1453,  1517,  1583,  1651,  1720,  1790,  1863,
    1937,  2013,  2090,  2170,  2250,  2333,  2418,  2504,  2592,  2681,  2773,  2866,  2961,  3058,  3157,  3258,
    3360,  3464,  3570,  3678,  3788,  3900,  4014,  4129,  4247,  4366,  4488,  4611,  4736,  4864,  4993,  5124,
    5257,  5392,  5530,  5669,  5810,  5953,  6099,  6246,  6395,  6547,  6700,  6856,  7014,  7174,  7335,  7500,
    7666,  7834,  8004,  8177,  8352,  8528,  8708,  8889,  9072,  9258,  9445,  9635,  9828,  10022, 10219, 10417,
    10619, 10822, 11028, 11235, 11446, 11658, 11873, 12090, 12309, 12530, 12754, 12980, 13209, 13440, 13673, 13909,
    14146, 14387, 14629, 14874, 15122, 15371, 15623, 15878, 16135, 16394, 16656, 16920, 17187, 17456, 17727, 18001,
    18277, 18556, 18837, 19121, 19407, 19696, 19987, 20281, 20577, 20876, 21177, 21481, 21787, 22096, 22407, 22721,
    23038, 23357, 23678, 24002, 24329, 24658, 24990, 25325, 25662, 26001, 26344, 26688, 27036, 27386, 27739, 28094,
    28452, 28813, 29176, 29542, 29911, 30282, 30656, 31033, 31412, 31794, 32179, 32567, 32957, 33350, 33745, 34143,
    34544, 34948, 35355, 35764, 36176, 36591, 37008, 37429, 37852, 38278, 38706, 39138, 39572, 40009, 40449, 40891,
    41337, 41785, 42236, 42690, 43147, 43606, 44069, 44534, 45002, 45473, 45947, 46423, 46903, 47385, 47871, 48359,
    48850, 49344, 49841, 50341, 50844, 51349, 51858, 52369, 52884, 53401, 53921, 54445, 54971, 55500, 56032, 56567,
    57105, 57646, 58190, 58737, 59287, 59840, 60396, 60955, 61517, 62082, 62650, 63221, 63795, 64372, 64952, 65535};

/// The matrix from linear light to the absorbances of cones, times 32768. Rows add up to 32768.
static const int32_t opsin[3][3] = {{9830, 20382, 2556}, {7537, 22675, 2556}, {7976, 6710, 18082}};
static const double inverse[3][3] = {
    {11.031566901960783, -9.866943921568629, -0.16462299647058826},
    {-3.254147380392157, 4.418770392156863, -0.16462299647058826},
    {-3.6588512862745097, 2.7129230470588235, 1.9459282392156863}};
static const double bias = 0.0037930732552754493;
static const double bias_root = 0.15595420054924863;

enum {
  BIAS = 249,       // of 65535
  UNITS = 16,       // steps of a root per unit of lightness
  ROOT_BITS = 4,    // of absorbance between two roots
  LIGHTNESS = 1024, // of medium gray
  RED = 8,          // units of the red-green axis per unit of lightness
  BLUE = 18,        // units of the blue-yellow axis per 16 units of lightness
  ALPHA = 1024,     // units between transparent and opaque
};

/// Units of lightness per unit of a root, so that white has 2047.
static const double scale = 2421.6;
static const int black_root = 6042; // in UNITS of lightness

static double cube_root(double value, double guess) {
  double root = guess;
  for (int i = 0; i < 40; i++) {
    const double next = (2 * root + value / (root * root)) / 3;
    if (next >= root && i > 0) {
      break;
    }
    root = next;
  }
  return root;
}

void ccodecs_palette_space_fill(palette_space *space) {
  double root = 1.1;
  space->roots[0] = 0;
  for (int i = PALETTE_ROOTS - 1; i > 0; i--) {
    root = cube_root((i << ROOT_BITS) / 65535.0, root); // from above, where the iteration falls monotonically
    space->roots[i] = (uint16_t)(root * (scale * (double)UNITS) + 0.5);
  }
}

static int root_of(const palette_space *space, int32_t absorbance) {
  const int low = space->roots[absorbance >> ROOT_BITS], high = space->roots[(absorbance >> ROOT_BITS) + 1];
  return low + ((high - low) * (absorbance & ((1 << ROOT_BITS) - 1)) >> ROOT_BITS);
}

static int divide(int value, int by) {
  return (value + (value < 0 ? -by / 2 : by / 2)) / by;
}

palette_point ccodecs_palette_space_point(const palette_space *space, const uint8_t rgba[4]) {
  const int32_t r = light[rgba[0]], g = light[rgba[1]], b = light[rgba[2]], alpha = rgba[3];
  int roots[3];
  for (int i = 0; i < 3; i++) {
    const uint32_t sum =
        (uint32_t)opsin[i][0] * (uint32_t)r + (uint32_t)opsin[i][1] * (uint32_t)g + (uint32_t)opsin[i][2] * (uint32_t)b;
    roots[i] = root_of(space, (int32_t)(sum >> 15) + BIAS);
  }
  const int mean = (roots[0] + roots[1]) >> 1;
  const int lightness = ((mean - black_root) >> 4) - LIGHTNESS;
  const int red = (roots[0] - roots[1]) * RED >> 5;
  const int blue = (roots[2] - mean) * BLUE >> 8;
  palette_point point = {{(int16_t)lightness, (int16_t)red, (int16_t)blue, ALPHA - ALPHA / 2 - 1}};
  if (alpha < 255) {
    point.axes[0] = (int16_t)divide(lightness * alpha, 255);
    point.axes[1] = (int16_t)divide(red * alpha, 255);
    point.axes[2] = (int16_t)divide(blue * alpha, 255);
    point.axes[3] = (int16_t)((ALPHA - 1) * alpha / 255 - ALPHA / 2);
  }
  return point;
}

/// Returns the level of sRGB whose light is nearest.
static uint8_t level_of(double value) {
  const double wanted = value * 65535;
  int low = 0, high = 255;
  while (low < high) {
    const int middle = (low + high) / 2;
    if ((light[middle] + light[middle + 1]) * 0.5 < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return (uint8_t)low;
}

void ccodecs_palette_space_color(palette_point point, uint8_t rgba[4]) {
  const int alpha = palette_clamp(divide((point.axes[3] + ALPHA / 2) * 255, ALPHA - 1), 0, 255);
  memset(rgba, 0, 4);
  if (alpha == 0) {
    return;
  }
  const double factor = 255.0 / alpha / scale;
  const double y = point.axes[0] * factor + (double)LIGHTNESS / scale;
  const double x = point.axes[1] * factor / (double)RED;
  const double b = point.axes[2] * factor * 16 / (double)BLUE;
  const double roots[3] = {y + x + bias_root, y - x + bias_root, y + b + bias_root};
  for (int i = 0; i < 3; i++) {
    double value = 0;
    for (int k = 0; k < 3; k++) {
      value += inverse[i][k] * (roots[k] * roots[k] * roots[k] - bias);
    }
    rgba[i] = level_of(value);
  }
  rgba[3] = (uint8_t)alpha;
}
