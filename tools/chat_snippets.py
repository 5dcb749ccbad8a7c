"""Small templates, one construct or a few each, whose rendering by Python's jinja2 is the reference
for tests/unit/text/test_jinja.c. chat_fixtures.py renders them."""

VARIABLES = {
    "s": "Hello Wörld\n",
    "l": [3, 1, 2],
    "d": {"b": 1, "a": [1, 2.5, None, True], "items": 5},
    "msgs": [
        {"role": "user", "content": " hi "},
        {"role": "assistant", "content": "yo",
         "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.0, "y": 'é"\n'}}}]},
    ],
    "n": None, "t": True, "f": 1e16, "g": 0.1, "e": "",
    "names": ["Bob", "alice", "Carl", "bob"],
}

# One a line.
LINES = r"""
{{ s }}
{{ s|trim }}|{{ s|upper }}|{{ s|title }}|{{ s|capitalize }}
{{ l }}{{ d }}{{ msgs }}
{{ f }} {{ g }} {{ 1e22 }} {{ 1.0 }} {{ 1e-5 }} {{ 123456789.125 }} {{ 1e15 }} {{ 0.0001 }} {{ 100000.0*10 }}
{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.revindex }}{{ loop.previtem }}{{ loop.nextitem }},{% else %}none{% endfor %}
{% for x in [] %}a{% else %}none{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}
{{ d['items'] }}
{{ d.b if d.b else 'no' }}{{ 'x' if false }}
{{ d|tojson }}{{ d|tojson(indent=2) }}
{{ msgs|tojson(separators=(',',':')) }}{{ s|tojson(ensure_ascii=true) }}{{ {'b':1,'a':2}|tojson(sort_keys=true) }}
{{ l[::-1] }}{{ l[1:] }}{{ l[-1] }}{{ s[1:4] }}{{ s[::-1] }}{{ s[-3:] }}{{ l[5] }}{{ l[-5:2] }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}
{{ 1 < 2 < 3 }}{{ 1 < 3 < 2 }}{{ 'a' in 'abc' }}{{ 'a' not in ['b'] }}{{ 3 in l }}{{ 'b' in d }}
{{ x is defined }}{{ x is not defined }}{{ n is none }}{{ s is string }}{{ d is mapping }}{{ l is sequence }}{{ l is iterable }}{{ 1 is number }}{{ t is boolean }}{{ t is true }}{{ 3 is odd }}{{ 4 is divisibleby 2 }}{{ 'a' is in 'abc' }}{{ 1 is eq 1 }}
{{ x }}{{ x|default('dflt') }}{{ e|default('d2', true) }}{{ n|d('z') }}
{% set ns = namespace(a=1, b=[]) %}{% for i in range(4) %}{% set ns.a = ns.a + i %}{% set ns.b = ns.b + [i] %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns }}
{% macro m(a, b=2, c='x') %}[{{ a }}-{{ b }}-{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, c=3) }}{{ m() }}{{ m(b=5, a=1) }}
{% set z %}block {{ s|trim }}{% endset %}<{{ z }}>
{% set z | upper | replace('B', 'c') %}block {{ s|trim }}{% endset %}<{{ z }}>
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% for i in range(10) if i is odd %}{% if i == 7 %}{% break %}{% endif %}{% if i == 3 %}{% continue %}{% endif %}{{ i }} {% endfor %}
{{ names|sort }}{{ names|sort(reverse=true) }}{{ names|unique|list }}{{ names|map('upper')|join(', ') }}{{ msgs|map(attribute='role')|list }}
{{ msgs|selectattr('role','equalto','user')|list|length }}{{ msgs|rejectattr('role','eq','user')|map(attribute='content')|first }}
{{ l|sum }}{{ l|min }}{{ l|max }}{{ names|min }}{{ l|first }}{{ l|last }}{{ l|length }}{{ s|length }}{{ l|reverse|list }}{{ 'abc'|reverse }}
{{ 42.55|round(1) }}{{ 42.5|round }}{{ 43.5|round }}{{ 42|round }}{{ 42.55|round(1,'floor') }}{{ -3|abs }}{{ '12'|int }}{{ 'x'|int }}{{ '3.7'|int }}{{ '3.7'|float }}{{ 3.99|int }}
{{ 'a' ~ 1 ~ none ~ 1.5 ~ true }}{{ 'a' 'b' }}{{ 'ab' * 3 }}{{ [1] + [2] }}
{{ 'a,b,c'.split(',') }}{{ ' a b  c '.split() }}{{ 'a b c'.split(' ', 1) }}{{ 'aXbXc'.rsplit('X',1) }}{{ 'abc'.startswith('a') }}{{ 'abc'.endswith(('b','c')) }}{{ 'xxaxx'.strip('x') }}{{ 'hello'.find('l') }}{{ 'hello'.replace('l','L') }}{{ 'hello'.replace('l','L',1) }}{{ ','.join(['a','b']) }}{{ 'ab cd'.title() }}
{{ ' a  b c '.rsplit(none, 1) }}{{ ' a  b c '.split(none, 1) }}{{ 'abc'.rpartition('b') }}{{ 'abc'.partition('x') }}{{ 'abc'.removeprefix('a').removesuffix('c') }}
{{ "\n\t\\\"\'\x41\u00e9\d" }}
{{ not true }}{{ not x is defined }}{{ 1 == 1.0 }}{{ true == 1 }}{{ none == false }}{{ '' or 'y' }}{{ 'a' and 'b' }}
{{ (1,) }}{{ (1,2) }}{{ () }}{{ {'a': (1,'b')} }}{{ 'it\'s' }}{{ ["it's", 'say "x"', "both '\""] }}{{ ["\x7f\u200b\U0001F600é"] }}
{{ "%s is %d and %.2f %%" % ('a', 3, 1.5) }}{{ '%5s|%-5s|' % ('a','b') }}{{ '{0}-{x}'.format(1, x=2) }}{{ '{}{{}}{}'.format(1, 'b') }}
{% raw %}{{ not }} {% endraw %}x
{# comment #}y
{{ strftime_now('%d %b %Y %-d %f|%z') }}
{{ range(3) }}{{ range(1,10,3)|list }}{{ dict(a=1,b=2) }}{{ d.get('zz') }}{{ d.get('zz', 5) }}{{ d.keys()|list }}{{ d.values() }}
{% with a=1, b=5 %}{{ a+b }}{% endwith %}{% filter upper|trim|title %} hi {% endfilter %}
{{ 'a\nb\n\nc'|indent(2) }}{{ 'a\nb\n\nc\n'|indent(2, true, true) }}
{{ '<a&b>'|e }}{{ 'abc'|safe }}{{ '<'|safe + '<' }}{{ '<' + '<'|safe }}{{ '<'|safe ~ '<' }}{{ '<'|e|e + '>' }}{{ 'a-b c(d'|title }}{{ 'ß ŉ'|upper }}{{ 'ΑΣ ΑΣΑ'|lower }}{{ 'ß'.title() }}{{ 'ǆ'.title() }}
{{ [1,2,3,4,5]|batch(2)|list }}{{ [1,2]|batch(3,'x')|list }}
{{ msgs[1].tool_calls[0].function.arguments | tojson }}{{ msgs.0.role }}
{{ loop is defined }}{{ messages is defined }}
{{ ''.join([]) }}{{ 'x' if not '' else 'y' }}{{ 1 if [] else 2 }}{{ true and not false }}
{{ -2|abs }}{{ -2 ** 2 }}{{ 2 ** 3 ** 2 }}{{ 1 - 1 - 1 }}{{ 10 // 3 * 3 }}
{{ 'a' ~ 1 + 2 }}
{{ [1,[2,{'a':none}]] == [1,[2,{'a':none}]] }}{{ [1,2] < [1,3] }}{{ 'a' < 'b' }}{{ 1.5 > 1 }}
{{ l|select('odd')|list }}{{ l|select|list }}{{ l|reject('gt',2)|list }}
{% set c = cycler('a','b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set j = joiner(', ') %}{{ j() }}{{ j() }}
{% for i in l %}{{ loop.cycle('o','e') }}{{ loop.changed(i > 1) }}{{ loop.length }}{{ loop.depth }}{% endfor %}
{% for a in 'héy' %}{{ a }}-{% endfor %}{% for a in undefinedthing %}no{% endfor %}{% for i in x %}{% endfor %}
{% set x = 1 %}{% for i in [1,2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 9 %}{% endif %}{{ x }}
{{ 1_000 }}{{ 0x1f }}{{ 0b11 }}{{ 0o17 }}{{ 1e3 }}{{ 1.5e-3 }}
{{ '\101' }}{{ 'tab\tq' }}
{% for m in msgs %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}
{{ msgs|map(attribute='content')|map('trim')|join('+') }}{{ names|join('-') }}{{ msgs|join(',', attribute='role') }}
{{ 'a,b'.partition(',') }}{{ 'a\nb\r\nc'.splitlines() }}{{ 'abcabc'.rfind('b') }}{{ 'abcabc'.count('b') }}{{ '12'.isdigit() }}
{{ x.y.z }}
{{ undefinedthing.y }}
{{ undefinedthing + 1 }}
{{ undefinedthing|length }}{{ undefinedthing|list }}{{ undefinedthing|join }}{{ undefinedthing|upper }}{{ undefinedthing == undefinedthing2 }}
{{ undefinedthing|tojson }}
{{ undefinedthing|int }}
{{ l.append(1) }}
{{ d.update({}) }}
{{ 1/0 }}
{{ 'a' + 1 }}
{{ 1 < 'a' }}
{{ raise_exception('boo') }}
{{ range(1000000) }}
{{ l|last }}{{ 'abc'|last }}{{ d|first }}{{ d|last }}{{ []|first }}{{ ''|first }}
{{ s[0] }}{{ s[6] }}{{ s[7] }}{{ s[-1] }}{{ s[99] }}
{{ d|length }}{{ d|list }}{{ e|length }}
{{ l is string }}{{ undefinedthing is sequence }}{{ d.keys() is sequence }}{{ d is sequence }}{{ d is iterable }}{{ range is callable }}{{ range(2) is sequence }}
{{ 5 is integer }}{{ true is integer }}{{ 5.0 is float }}{{ true is number }}{{ 'a' is lower }}{{ 'A1' is upper }}
{{ none|string }}{{ none|upper }}{{ true|int }}{{ 1|string ~ 'x' }}{{ 5|float }}
{{ 'x'.nosuch is defined }}{{ 'x'.upper is defined }}{{ l.append is defined }}{{ d.pop is defined }}{{ d.nosuch is defined }}
{{ 9223372036854775807 + 0 }}{{ -9223372036854775807 }}
{{ [3,1,2]|sort|join }}{{ {'b':2,'a':1}|dictsort(by='value') }}{{ {'b':2,'A':1}|dictsort(true) }}{{ msgs|sort(attribute='role')|map(attribute='role')|list }}
{{ 'a' if t else 'b' if n else 'c' }}{{ ('a' if n else 'b') if t }}
{%- set q = [1,2] -%}{{ q }}
{{- ' x ' -}}
{% if l and not n or e %}1{% elif x %}2{% else %}3{% endif %}
{% if n %}1{% elif x %}2{% elif t %}{% if n %}4{% endif %}5{% else %}3{% endif %}
{{ {'a':1}.a }}{{ {'a':1}['a'] }}{{ [1,2][0] }}{{ 'abc'[1] }}{{ (1,2)[1] }}{{ {1:'x', none:'y', true:'z'} }}
{{ {'a':1, 'a':2} }}{{ [1, 2,] }}{{ {'x': 1,} }}{{ range(5)[1:3]|list }}
{% for i in range(3) %}{% for j in range(2) %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}
{{ '%03d %x %r' % (5, 255, 'a') }}{{ '%(a)s' % {'a': 1} }}{{ 'x%sy' % 'z' }}{{ '%+d % d %5.1f|' % (3, 4, 2.25) }}
{{ "a" "b" ~ "c" }}{{ '' ~ undefinedthing ~ '' }}{{ [undefinedthing] }}
{{ 1.0|round|int }}{{ 2.5|round }}{{ 0.125|round(2) }}{{ 1e300*1e10 }}{{ -1e300*1e10 }}{{ 5 % 3.5 }}
{{ 'abc'|map('upper')|list }}{{ [[1,2],[3]]|map('length')|list }}{{ [[1,2],[3]]|map('first')|list }}{{ ['a ',' b']|map('trim')|list }}{{ msgs|map(attribute='nope', default='-')|list }}
{{ 'Hello'|replace('l','') }}{{ 123|replace(2,'x') }}{{ 'aaa'|replace('a','b',2) }}{{ 'abc'.replace('','-') }}
{{ l|tojson|length }}{{ (l|tojson)[0] }}{{ 1.0|tojson }}{{ none|tojson }}{{ 'a/b</x>'|tojson }}{{ 1e20|tojson }}{{ {1:2}|tojson }}{{ []|tojson(indent=2) }}{{ {}|tojson(indent=4) }}{{ [[],{}]|tojson(indent=1) }}
{{ '\x7f\x00\x1f\u2028é😀'|tojson }}{{ '\x7f\x00\x1f\u2028é😀'|tojson(true) }}
{{ s.split('W')[-1].strip('\n').lstrip('ö') }}
{% set s = 'q' %}{{ s }}{% for i in [1] %}{% set s = 'r' %}{% endfor %}{{ s }}
{% for role, content in [('a','b'),('c','d')] %}{{ role }}{{ content }}{% endfor %}
{% for a, (b, c) in [(1,(2,3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [(1,2,3)] %}{% endfor %}
{{ msgs[0]['role'] }}{{ msgs[0].content|trim }}{{ msgs[-1]['content'] }}{{ msgs[0].nope }}{{ msgs[0]['nope'] is none }}
{{ 'x' is defined and s is defined and nope is not defined }}
{{ nope is defined or s }}
{% if (msgs[0].role == 'user') != (1 % 2 == 0) %}y{% endif %}
{{ '\u00e9\U0001F600\x41' }}
{%set x=1%}{{x}}{%-if x-%}y{%-endif-%}
{{x}}{{-1}}{{- 1 -}}
{{ {'a':{'b':1}}.a.b }}{{{'a':1}}}
a {{- 'x' -}}   b
{{ l|map('string')|join(',') }}{{ l|map('tojson')|join }}
{{ msgs|selectattr('tool_calls')|list|length }}{{ msgs|selectattr('tool_calls','defined')|map(attribute='role')|join }}
{% for m in msgs if m.role != 'system' %}{{ loop.index }}{{ m.role }}{% endfor %}
{{ varargs }}{{ caller }}
{% set f = 'a'.upper %}{{ f() }}
{{ ''|default('x', boolean=true) }}{{ none|default('x') }}
{{ [1,2,3]|sum(start=10) }}{{ [{'a':1},{'a':2}]|sum(attribute='a') }}
{{ 1 if 2 else 3 if 4 else 5 }}
{{ s if s is string else s|tojson }}
{{ not not 1 }}{{ - - 1 }}{{ +1 }}
{{ true }}{{ True }}{{ none }}{{ None }}{{ false }}
{{ 'a'|upper|lower }}{{ ('a'|upper) ~ 'b' }}{{ 'a' ~ 'b'|upper }}{{ ('a' ~ 'b')|upper }}
{{ l|reverse|first }}{{ (l|map('string')|list)[0] }}
{% set it = l|map('string') %}{{ it|first }}{{ it|list }}{{ it|list }}
{{ l|map('string')|length }}
{{ range(0) }}{{ range(3,0,-1)|list }}{{ range(5)|sum }}{{ range(3)|length }}{{ 2 in range(3) }}{{ range(3)[-1] }}{{ range(3) == range(0,3) }}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(5) }}
{% set x = 1 %}{% macro f() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ f() }}
{% for i in range(3) %}{% macro f() %}{{ i }}{{ loop.index }}{% endmacro %}{{ f() }}{% endfor %}
{% for m in msgs %}{% if loop.first %}{% set c = 1 %}{% endif %}{{ c }}{% endfor %}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}
{% generation %}{{ s }}é{% endgeneration %}
{{ [1, 'a']|sort }}
{{ none|length }}
{{ none.x }}{{ none['x'] }}{{ 5 .x }}
{{ d.nosuch.x }}
{{ l|join(1) }}{{ 'abc'|join('.') }}{{ d|join(',') }}
{{ 'a'|list }}{{ {'a': 1}|list }}
{{ none|list }}
{{ l|attr('nope') }}{{ 'x'|attr('upper') is defined }}
{{ 'abcdef'[::2] }}{{ 'abcdef'[4:1:-1] }}{{ 'abcdef'[:-2] }}{{ 'äöü'[1] }}{{ 'äöü'[::-1] }}{{ 'äöü'[-2:] }}
{{ 5 in [1, 5.0] }}{{ '5' in [5] }}{{ none in [none] }}{{ 1 in {1: 2} }}{{ 'a' in nope }}
{{ 1 in 'a' }}
{% if messages %}a{% endif %}{% if tools is not none and tools %}b{% endif %}
{{ "a'b" }}{{ ["a'b"] }}{{ ['a\\b'] }}{{ ['\n'] }}
{{ 1.1 + 2.2 }}{{ 0.1 * 3 }}{{ 1e16 + 1 }}{{ 1/3 }}{{ 2/3*100 }}{{ 100/3 }}{{ 5e-324 }}{{ 1.7976931348623157e308 }}
{{ 3 * [1, 2] }}{{ (1,) + (2,) }}{{ [] * 5 }}{{ '' * 3 }}{{ 'a' * -1 }}{{ true + true }}{{ 'a' * true }}
{{ ('a', 'b') is sequence }}{{ 'a' is iterable }}{{ 1 is iterable }}{{ 'true' is filter }}{{ 'upper' is filter }}{{ 'odd' is test }}
{% set x %}{% endset %}[{{ x }}]{{ x is string }}
{{ namespace(a=1).a }}{{ namespace({'b': 2}).b }}{{ namespace().c is defined }}
{{ dict is defined }}
{{ l | length > 2 and l | first == 3 }}{{ l|length == 3 and 'y' or 'n' }}
{{ '  x '|trim ~ '|' }}{{ 'xax'|trim('x') }}{{ 12|trim }}
{{ s.upper().lower().strip().split(' ')[0] }}
{{ 'a' if x is defined else 'b' }}{{ (x is not defined) | string }}
{{ d.a[1:] }}{{ d['a'][0] }}{{ d.a|length }}{{ d.a.0 }}
{{ 1 }}{{ 2 }}{% if 1 %}{% endif %}{{ 3 }}
{{ 'abc' }}{# x #}{{- 'd' }}{#- y -#}  {{ 'e' }}
{{ "é"|length }}{{ "日本語"[1] }}{{ "日本語"|reverse }}{{ '日本語'.find('語') }}{{ 'x日本語'.split('本') }}
""".strip("\n").split("\n")

# What needs line ends.
TEXTS = [
    "a\n", "a\n\n", "a\r\nb\r", "{% if t %}\n\nx{% endif %}\n\n", "  {# c #}\n x", "x  {# c #}\n x",
    "{{ 1 }}\n{{ 2 }}\n", "{% raw %}\n a {% endraw %}\nb", "{% raw -%}\n a {%- endraw -%}\nb",
    "x\n  {% raw %} {% x %}\n  {% endraw %}  y",
    "{%- macro f() -%}\n  a\n{%- endmacro -%}\n{{ f() }}",
    "{% for m in msgs -%}\n  {{ m.role }}:\n{% endfor %}",
    "{% for i in l %}{{ i }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "  {% if t %}\n  indented\n  {% endif %}\n  {%- if t -%}   tight   {%- endif -%}   z\n",
    "{%+ if t %} plus {% endif +%}\nafter", "  {%+ if t %}\n  x\n  {%+ endif %}\n",
    "{{ 'a\\\nb' }}", "{{ \"a\\\n b\" }}", "{{ 'a\nb' }}", "{#- x -#}\n  y", "{#-#}  y", "{# a\nb #}\nc",
    "\u3000{%- if t %}\u00a0 a{% endif %}", "a {{- 'x' -}} \u2003 b",
    "{% if t %}a{% endif %}   \n{%- if t %}b{% endif %}", "\t{% if t %}\t\n\tx\n\t{% endif %}\t\n",
    "{% set ns = namespace(x=[]) %}{% set ns.x = [ns.x] %}{{ ns.x }}",
    "{% for x in l %}\n  {{ x }}\n  {% if loop.last %}\n  end\n  {% endif %}\n{% endfor %}\n",
    "{{ s }}\n\n\n", "\n\n{{ s }}", "  \n  {% if t %}x{% endif %}", "a{% if t %}\n\n{% endif %}b",
    "{% set x = [\n  1,\n  2\n] %}\n{{ x }}", "{{ l\n|length\n}}", "{% if t -%}\n\n  a\n\n{%- endif %}\n b",
]

# What must be refused.
BROKEN = [
    "{% if x %}", "{{ x", "{% for %}", "{% endfor %}", "{{ 'abc }}", "{# x", "{{ a b }}", "{% set %}",
    "{{ 1|nosuch }}", "{{ 1 is nosuch }}", "{% nosuch %}", "{{ (1 }}", "{{ 1) }}", "{{ }}", "{{ 1 + }}",
    "{% for x in %}{% endfor %}", "{% macro %}{% endmacro %}", "{{ a.}}", "{{ a[ }}", "{% break %}",
    "{% if %}{% endif %}", "{{ 1 is is }}", "{% set 1 = 2 %}", "{% set loop = 2 %}{% for %}",
    "{{ x(a=1, 2) }}", "{% else %}", "{{ 'a' is 1 }}", "{% macro f(a=1, b) %}{% endmacro %}", "{{ ? }}",
    "{% for a.b in l %}{% endfor %}", "{{ 1 not 2 }}", "{{ [1 }}", "{{ {1} }}", "{% if t %}{% endfor %}",
]


def snippets():
    return LINES + TEXTS + BROKEN
