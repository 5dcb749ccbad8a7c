#include "text/unicode.h"

#include <utf8proc.h>

/* Classes of newer characters: a general category, or HAN for letters of the Han script. */
enum newer { CF, HAN, LL, LM, LO, LU, MC, MN, ND, NO, PD, PO, SM, SO, NUM_NEWER };

/* An established character of the same class in three and in four bytes. */
static const uint32_t stand_in[NUM_NEWER][2] = {
    [CF] = {0x2060, 0x110BD}, [HAN] = {0x4E00, 0x20000}, [LL] = {0x10D0, 0x10428},
    [LM] = {0x81A, 0x10780},  [LO] = {0x800, 0x10000},   [LU] = {0x10A0, 0x10400},
    [MC] = {0x903, 0x11000},  [MN] = {0x816, 0x101FD},   [ND] = {0x966, 0x104A0},
    [NO] = {0x9F4, 0x10107},  [PD] = {0x1400, 0x10EAD},  [PO] = {0x830, 0x10100},
    [SM] = {0x2044, 0x1D6C1}, [SO] = {0x9FA, 0x10137},
};

struct newer_range {
    uint32_t first, last;
    enum newer class;
};

/* What Unicode 15.0 to 16.0 assigned; U+1734, which changed its category; and U+180E, which PCRE2
 * takes for white space though it has been a format character since Unicode 6.3. */
static const struct newer_range newer[] = {
    {0x897, 0x897, MN},      {0xCF3, 0xCF3, MC},      {0xECE, 0xECE, MN},
    {0x180E, 0x180E, CF},    {0x1B4E, 0x1B4F, PO},    {0x1B7F, 0x1B7F, PO},
    {0x1C89, 0x1C89, LU},    {0x1C8A, 0x1C8A, LL},    {0x2427, 0x2429, SO},
    {0x2FFC, 0x2FFF, SO},    {0x31E4, 0x31E5, SO},    {0x31EF, 0x31EF, SO},
    {0xA7CB, 0xA7CC, LU},    {0xA7CD, 0xA7CD, LL},    {0xA7DA, 0xA7DA, LU},
    {0xA7DB, 0xA7DB, LL},    {0xA7DC, 0xA7DC, LU},    {0x105C0, 0x105F3, LO},
    {0x10D40, 0x10D49, ND},  {0x10D4A, 0x10D4D, LO},  {0x10D4E, 0x10D4E, LM},
    {0x10D4F, 0x10D4F, LO},  {0x10D50, 0x10D65, LU},  {0x10D69, 0x10D6D, MN},
    {0x10D6E, 0x10D6E, PD},  {0x10D6F, 0x10D6F, LM},  {0x10D70, 0x10D85, LL},
    {0x10D8E, 0x10D8F, SM},  {0x10EC2, 0x10EC4, LO},  {0x10EFC, 0x10EFF, MN},
    {0x1123F, 0x11240, LO},  {0x11241, 0x11241, MN},  {0x11380, 0x11389, LO},
    {0x1138B, 0x1138B, LO},  {0x1138E, 0x1138E, LO},  {0x11390, 0x113B5, LO},
    {0x113B7, 0x113B7, LO},  {0x113B8, 0x113BA, MC},  {0x113BB, 0x113C0, MN},
    {0x113C2, 0x113C2, MC},  {0x113C5, 0x113C5, MC},  {0x113C7, 0x113CA, MC},
    {0x113CC, 0x113CD, MC},  {0x113CE, 0x113CE, MN},  {0x113CF, 0x113CF, MC},
    {0x113D0, 0x113D0, MN},  {0x113D1, 0x113D1, LO},  {0x113D2, 0x113D2, MN},
    {0x113D3, 0x113D3, LO},  {0x113D4, 0x113D5, PO},  {0x113D7, 0x113D8, PO},
    {0x113E1, 0x113E2, MN},  {0x116D0, 0x116E3, ND},  {0x1171E, 0x1171E, MC},
    {0x11B00, 0x11B09, PO},  {0x11BC0, 0x11BE0, LO},  {0x11BE1, 0x11BE1, PO},
    {0x11BF0, 0x11BF9, ND},  {0x11F00, 0x11F01, MN},  {0x11F02, 0x11F02, LO},
    {0x11F03, 0x11F03, MC},  {0x11F04, 0x11F10, LO},  {0x11F12, 0x11F33, LO},
    {0x11F34, 0x11F35, MC},  {0x11F36, 0x11F3A, MN},  {0x11F3E, 0x11F3F, MC},
    {0x11F40, 0x11F40, MN},  {0x11F41, 0x11F41, MC},  {0x11F42, 0x11F42, MN},
    {0x11F43, 0x11F4F, PO},  {0x11F50, 0x11F59, ND},  {0x11F5A, 0x11F5A, MN},
    {0x1342F, 0x1342F, LO},  {0x13439, 0x1343F, CF},  {0x13440, 0x13440, MN},
    {0x13441, 0x13446, LO},  {0x13447, 0x13455, MN},  {0x13460, 0x143FA, LO},
    {0x16100, 0x1611D, LO},  {0x1611E, 0x16129, MN},  {0x1612A, 0x1612C, MC},
    {0x1612D, 0x1612F, MN},  {0x16130, 0x16139, ND},  {0x16D40, 0x16D42, LM},
    {0x16D43, 0x16D6A, LO},  {0x16D6B, 0x16D6C, LM},  {0x16D6D, 0x16D6F, PO},
    {0x16D70, 0x16D79, ND},  {0x18CFF, 0x18CFF, LO},  {0x1B132, 0x1B132, LO},
    {0x1B155, 0x1B155, LO},  {0x1CC00, 0x1CCEF, SO},  {0x1CCF0, 0x1CCF9, ND},
    {0x1CD00, 0x1CEB3, SO},  {0x1D2C0, 0x1D2D3, NO},  {0x1DF25, 0x1DF2A, LL},
    {0x1E030, 0x1E06D, LM},  {0x1E08F, 0x1E08F, MN},  {0x1E4D0, 0x1E4EA, LO},
    {0x1E4EB, 0x1E4EB, LM},  {0x1E4EC, 0x1E4EF, MN},  {0x1E4F0, 0x1E4F9, ND},
    {0x1E5D0, 0x1E5ED, LO},  {0x1E5EE, 0x1E5EF, MN},  {0x1E5F0, 0x1E5F0, LO},
    {0x1E5F1, 0x1E5FA, ND},  {0x1E5FF, 0x1E5FF, PO},  {0x1F6DC, 0x1F6DC, SO},
    {0x1F774, 0x1F776, SO},  {0x1F77B, 0x1F77F, SO},  {0x1F7D9, 0x1F7D9, SO},
    {0x1F8B2, 0x1F8BB, SO},  {0x1F8C0, 0x1F8C1, SO},  {0x1FA75, 0x1FA77, SO},
    {0x1FA87, 0x1FA89, SO},  {0x1FA8F, 0x1FA8F, SO},  {0x1FAAD, 0x1FAAF, SO},
    {0x1FABB, 0x1FABF, SO},  {0x1FAC6, 0x1FAC6, SO},  {0x1FACE, 0x1FACF, SO},
    {0x1FADA, 0x1FADC, SO},  {0x1FADF, 0x1FADF, SO},  {0x1FAE8, 0x1FAE9, SO},
    {0x1FAF7, 0x1FAF8, SO},  {0x1FBCB, 0x1FBEF, SO},  {0x2B739, 0x2B739, LO},
    {0x2EBF0, 0x2EE5D, HAN}, {0x31350, 0x323AF, HAN},
};
enum { NUM_RANGES = sizeof newer / sizeof *newer };

struct range {
    uint32_t first, last;
};

/* Characters with a combining class, a decomposition or a composition that came after Unicode 9.0
 * (up to 18.0), and the starters that compose with older marks since. */
static const struct range never_normalized[] = {
    {0x558, 0x558},     {0x58B, 0x58C},     {0x5C8, 0x5C9},     {0x7FD, 0x7FD},
    {0x897, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1AF0},
    {0x1DF6, 0x1DFA},   {0x209D, 0x209F},   {0x32FF, 0x32FF},   {0xA7F1, 0xA7F4},
    {0xA82C, 0xA82C},   {0xAB69, 0xAB69},   {0x105C9, 0x105C9}, {0x105D2, 0x105D2},
    {0x105DA, 0x105DA}, {0x105E4, 0x105E4}, {0x10781, 0x10785}, {0x10787, 0x107B0},
    {0x107B2, 0x107BF}, {0x10D24, 0x10D27}, {0x10D69, 0x10D6D}, {0x10EAB, 0x10EAC},
    {0x10ECB, 0x10ECF}, {0x10EF0, 0x10EFB}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x11383, 0x11383},
    {0x11385, 0x11385}, {0x1138E, 0x1138E}, {0x11391, 0x11391}, {0x113B8, 0x113B8},
    {0x113BB, 0x113BB}, {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113C9},
    {0x113CE, 0x113D0}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11930},
    {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42},
    {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x1611E, 0x16129},
    {0x1612F, 0x1612F}, {0x16D67, 0x16D6A}, {0x16FF0, 0x16FF1}, {0x1B123, 0x1B126},
    {0x1CCD6, 0x1CCF9}, {0x1D127, 0x1D128}, {0x1D250, 0x1D252}, {0x1D25B, 0x1D25C},
    {0x1D25F, 0x1D25F}, {0x1D280, 0x1D281}, {0x1D6A6, 0x1D6A6}, {0x1DF95, 0x1DF95},
    {0x1DFCD, 0x1DFFF}, {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
    {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1E5EE, 0x1E5EF},
    {0x1E6E3, 0x1E6E3}, {0x1E6E6, 0x1E6E6}, {0x1E6EE, 0x1E6EF}, {0x1E6F5, 0x1E6F5},
    {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9},
};
enum { NUM_NEVER = sizeof never_normalized / sizeof *never_normalized };

size_t tri_char_before(const char *text, size_t at)
{
    size_t bytes = 1;
    while (bytes < 4 && bytes < at && ((unsigned char)text[at - bytes] & 0xC0) == 0x80)
        bytes++;
    return bytes;
}

size_t tri_char_put(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

static const struct newer_range *find_newer(uint32_t c)
{
    size_t low = 0, high = NUM_RANGES;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (c > newer[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < NUM_RANGES && c >= newer[low].first ? &newer[low] : NULL;
}

static utf8proc_category_t category(uint32_t c)
{
    const struct newer_range *range = find_newer(c);
    if (range)
        c = stand_in[range->class][1];
    return utf8proc_category((utf8proc_int32_t)c);
}

bool tri_char_is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

bool tri_char_is_word(uint32_t c)
{
    switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default: /* joiners, and the symbols that are alphabetic: letters in circles and squares */
        return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
               (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
               (c >= 0x1F170 && c <= 0x1F189);
    }
}

bool tri_char_is_numeric(uint32_t c)
{
    if ((c >= 0x11DE0 && c <= 0x11DE9) || (c >= 0x16FF4 && c <= 0x16FF6))
        return true; /* here the reference follows Unicode 17.0 */
    const utf8proc_category_t category_of_c = category(c);
    return category_of_c == UTF8PROC_CATEGORY_ND || category_of_c == UTF8PROC_CATEGORY_NL ||
           category_of_c == UTF8PROC_CATEGORY_NO;
}

/* The first byte of every newer character is one of these. */
static bool may_begin_newer(unsigned char lead)
{
    return lead >= 0xE0;
}

bool tri_text_is_classified_alike(const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        if (!may_begin_newer((unsigned char)text[at])) {
            at++;
            continue;
        }
        size_t length;
        const uint32_t c = tri_char_at(text + at, &length);
        /* The blocks of everyday scripts hold nothing new: CJK and kana, Hangul, punctuation. */
        const bool everyday = (c >= 0x2000 && c < 0x2427) || (c >= 0x3000 && c < 0x31E0) ||
                              (c >= 0x3200 && c < 0xA700) || (c >= 0xA800 && c < 0x10000);
        if (!everyday && find_newer(c))
            return false;
        at += length;
    }
    return true;
}

void tri_text_classify_alike(char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        if (!may_begin_newer((unsigned char)text[at])) {
            at++;
            continue;
        }
        size_t length;
        const struct newer_range *range = find_newer(tri_char_at(text + at, &length));
        if (range)
            (void)tri_char_put(stand_in[range->class][length == 4], text + at);
        at += length;
    }
}

bool tri_char_is_never_normalized(uint32_t c)
{
    size_t low = 0, high = NUM_NEVER;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (c > never_normalized[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < NUM_NEVER && c >= never_normalized[low].first;
}
