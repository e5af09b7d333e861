/** The template language: the output of each construct, and its error messages. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { render, templateFailureMessage } from './render-text.ts';

type Table = readonly (readonly [text: string, expected: string])[];

const language = suite('template language');

const CASES: Table = [
	// Text, actions, trimming of white space, and comments.
	['', ''],
	['plain } } { text', 'plain } } { text'],
	['a {{"x"}} b', 'a x b'],
	['a  {{- "x" -}}  b', 'axb'],
	['a {{- 1}} {{2 -}} b', 'a1 2b'],
	['{{-1}}{{- -1}}', '-1-1'],
	['a {{/* no {{ end */}} b{{- /* x */ -}} c', 'a  bc'],
	['{{"{{"}} {{`}}`}} {{"a\\"b\\n\\u00e9\\x41\\101"}}', '{{ }} a"b\né' + 'AA'],
	["{{'a'}} {{'\\n'}} {{'世'}}", '97 10 19990'],
	// The syntax of numbers.
	['{{1}} {{-2}} {{+3}} {{0x1F}} {{0b101}} {{0o17}} {{017}} {{1_000}}', '1 -2 3 31 5 15 15 1000'],
	[
		'{{1.5}} {{.5}} {{1e3}} {{1e21}} {{1e20}} {{0.00001}} {{0x1p4}} {{1.0}}',
		'1.5 0.5 1000 1e+21 100000000000000000000 1e-05 16 1',
	],
	['{{9223372036854775807}} {{-9223372036854775808}}', '9223372036854775807 -9223372036854775808'],
	// Access to the data, and how values are printed.
	[
		'{{.}}',
		'map[constructor:own empty:[] float:1.5 list:[a b c] map:map[a:1 b:2] no:false none:<nil> number:7 text:x<y yes:true]',
	],
	['{{.text}} {{.number}} {{.float}} {{.yes}} {{.list}} {{.map}}', 'x<y 7 1.5 true [a b c] map[a:1 b:2]'],
	['{{.missing}} {{.none}}', '<no value> <no value>'],
	['{{.map.a}} {{(.map).b}} {{$.map.a}} {{.map.c}}', '1 2 1 <no value>'],
	['{{.constructor}} {{.__proto__}} {{.map.toString}} {{.map.size}}', 'own <no value> <no value> <no value>'],
	// The assignment and the scope of variables.
	['{{$x := 1}}{{$x}}{{$x = 2}}{{$x}}', '12'],
	['{{$x := 1}}{{if true}}{{$x := 2}}{{$x}}{{end}}{{$x}}', '21'],
	['{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}', '2'],
	['{{$x := "a" | printf "%s-%s" "b"}}{{$x}}', 'b-a'],
	['{{with $y := .text}}{{$y}}{{.}}{{end}}', 'x<yx<y'],
	// Pipelines, and calls of functions.
	['{{.text | html}} {{html "<" ">"}} {{"a" | printf "%s%s" "b" | len}}', 'x&lt;y &lt;&gt; 2'],
	['{{printf "%d %s" (len .list) (index .list 1)}}', '3 b'],
	['{{(index .list 0) | printf "%q"}}', '"a"'],
	['{{print}}{{print 1 2}} {{print "a" "b"}} {{print 1 "a" 2}} {{println 1 "x"}}', '1 2 ab 1a2 1 x\n'],
	['{{js "<a href=\'x\'>\\n"}} {{urlquery "a b" "&c"}}', "\\u003Ca href\\u003D\\'x\\'\\u003E\\u000A a+b%26c"],
	// Conditions and loops.
	['{{if .yes}}a{{else}}b{{end}}{{if .no}}a{{else}}b{{end}}', 'ab'],
	['{{if 0}}0{{else if ""}}1{{else if .empty}}2{{else if .none}}3{{else if .text}}4{{else}}5{{end}}', '4'],
	['{{with .none}}a{{else}}b{{end}}{{with .map}}{{.a}}{{end}}', 'b1'],
	['{{with .none}}a{{else with .text}}{{.}}{{else}}c{{end}}', 'x<y'],
	['{{range .list}}{{.}},{{end}}', 'a,b,c,'],
	['{{range $x := .list}}{{$x}}{{end}}{{range $i, $x := .list}}{{$i}}{{$x}}{{end}}', 'abc0a1b2c'],
	['{{range $k, $v := .map}}{{$k}}={{$v}};{{end}}', 'a=1;b=2;'],
	[
		'{{range .empty}}x{{else}}none{{end}}{{range .none}}x{{else}}nil{{end}}{{range 0}}x{{else}}zero{{end}}',
		'nonenilzero',
	],
	['{{range 3}}{{.}}{{end}} {{range $i := 3}}{{$i}}{{end}}', '012 012'],
	['{{range 5}}{{if eq . 1}}{{continue}}{{end}}{{if eq . 3}}{{break}}{{end}}{{.}}{{end}}', '02'],
	['{{range .list}}{{range 2}}{{if .}}{{break}}{{end}}{{.}}{{end}}{{.}}{{end}}', '0a0b0c'],
	['{{range $i, $x := .list}}{{end}}{{$x := 1}}{{range .list}}{{$x = .}}{{end}}{{$x}}', 'c'],
	// `and` and `or` stop evaluating as soon as the result is known.
	['{{and 1 "" (index .list 9)}}|{{or 0 "x" (index .list 9)}}|{{and 1 2}}|{{or 0 ""}}|{{not .no}}', '|x|2||true'],
	['{{0 | and 1}} {{2 | or 0}} {{and .none .none.x}}', '0 2 <no value>'],
	// The comparison functions.
	[
		'{{eq 1 1}} {{eq 1 2 1}} {{ne "a" "b"}} {{lt 1 2}} {{le 2 2}} {{gt "b" "a"}} {{ge 1.5 2.5}} {{eq .none nil}}',
		'true true true true true true false true',
	],
	['{{lt "Z" "a"}} {{lt "\\uffff" "\\U00010000"}}', 'true true'],
	// The functions `len`, `index` and `slice`.
	['{{len "é"}} {{len .list}} {{len .map}}', '2 3 2'],
	[
		'{{index .map "a"}} {{index .map "z"}} {{index "abc" 1}} {{index (list (list 1 2)) 0 1}} {{index .list}}',
		'1 <no value> 98 2 [a b c]',
	],
	['{{slice "héllo" 1 3}} {{slice .list 1}} {{slice .list 0 2}} {{slice "abc"}}', 'é [b c] [a b] abc'],
	// The definition and the use of named templates.
	['{{define "T"}}[{{.}}{{$}}]{{end}}{{template "T" 1}}{{template "T"}}', '[11][<no value><no value>]'],
	['{{block "B" .text}}<{{.}}>{{end}}', '<x<y>'],
	['{{template "later" 1}}{{define "later"}}{{template "last" .}}{{end}}{{define "last"}}{{.}}{{end}}', '1'],
	['{{define "c"}}{{if .}}{{.}}{{template "c" (sub . 1)}}{{end}}{{end}}{{template "c" 3}}', '321'],
	['{{define "T"}}{{end}}{{define "T"}}x{{end}}{{template "T"}}', 'x'],
	['{{$x := 1}}{{define "T"}}{{$x := 2}}{{$x}}{{end}}{{template "T"}}{{$x}}', '21'],
];
for (const [text, expected] of CASES) language(text || '(nothing)', () => assert.is(render(text), expected));
language.run();

const formatting = suite('printf');
const FORMATS: Table = [
	['"%v %v %v %v" 1 "a" 1.5 true', '1 a 1.5 true'],
	['"%d|%5d|%-5d|%05d|%+d|% d" 42 42 42 42 42 42', '42|   42|42   |00042|+42| 42'],
	['"%x %X %#x %o %b %c %U %q" 255 255 255 8 5 65 65 65', "ff FF 0xff 10 101 A U+0041 'A'"],
	['"%f %.2f %8.3f %e %g %G" 1.5 1.255 3.14159 12345.678 1e21 1e-7', '1.500000 1.25    3.142 1.234568e+04 1e+21 1E-07'],
	[
		'"%s|%10s|%-10s|%.2s|%q|%x" "abc" "abc" "abc" "abc" "a\\"b\\n" "hi"',
		'abc|       abc|abc       |ab|"a\\"b\\n"|6869',
	],
	['"%t %T %T %T %T" true 1 "a" 1.5 (list)', 'true int string float64 []interface {}'],
	['"%*d %[2]d %[1]d" 5 42', '   42 42 5'],
	['"%%|%d" "x"', '%|%!d(string=x)'],
	['"%d %d" 1', '1 %!d(MISSING)'],
	['"a" 1', 'a%!(EXTRA int=1)'],
	['"%"', '%!(NOVERB)'],
	['"%z" 1', '%!z(int=1)'],
	['"%d %s" (list 1 2) (list "a" "b")', '[1 2] [a b]'],
	['"%v %s" nil nil', '<nil> %!s(<nil>)'],
	['"%#v %#v" "a" (list "b" 1)', '"a" []interface {}{"b", 1}'],
	['"%08.3f|%+.1f" 3.14159 2.0', '0003.142|+2.0'],
];
for (const [args, expected] of FORMATS) formatting(args, () => assert.is(render(`{{printf ${args}}}`), expected));
formatting.run();

const mistakes = suite('mistakes in templates');
const MISTAKES: Table = [
	['a\n{{nope}}', 'template: t.html:2: function "nope" not defined'],
	['{{"a', 'template: t.html:1: unterminated quoted string'],
	['{{`a', 'template: t.html:1: unterminated raw quoted string'],
	['{{.x', 'template: t.html:1: unclosed action'],
	['{{(1}}', 'template: t.html:1: unclosed left paren'],
	['{{1)}}', 'template: t.html:1: unexpected right paren'],
	['{{}}', 'template: t.html:1: missing value for command'],
	['{{if}}x{{end}}', 'template: t.html:1: missing value for if'],
	['\n\n{{if 1}}x', 'template: t.html:3: unexpected EOF: {{if}} has no {{end}}'],
	['{{end}}', 'template: t.html:1: unexpected {{end}}'],
	['{{else}}', 'template: t.html:1: unexpected {{else}}'],
	['{{break}}', 'template: t.html:1: {{break}} outside {{range}}'],
	['{{range 1}}{{define "x"}}{{end}}{{end}}', 'template: t.html:1: unexpected {{define}} inside a block'],
	['{{$x}}', 'template: t.html:1: undefined variable "$x"'],
	['{{$x = 1}}', 'template: t.html:1: undefined variable "$x"'],
	['{{if 1}}{{$x := 1}}{{end}}{{$x}}', 'template: t.html:1: undefined variable "$x"'],
	['{{1 | 2}}', 'template: t.html:1: non executable command in pipeline stage 2'],
	['{{nil}}', 'template: t.html:1: nil is not a command'],
	['{{1x}}', 'template: t.html:1: bad number syntax: "1x"'],
	['{{99999999999999999999}}', 'template: t.html:1: bad number syntax: "99999999999999999999"'],
	["{{''}}", 'template: t.html:1: malformed character constant'],
	['{{"\\z"}}', 'template: t.html:1: unknown escape in a string'],
	['{{.a!b}}', 'template: t.html:1: unexpected "!" in an action'],
	['{{/* a', 'template: t.html:1: unclosed comment'],
	['{{template x}}', 'template: t.html:1: unexpected "x" in template clause'],
	['{{define "a"}}1{{end}}{{define "a"}}2{{end}}', 'template: t.html:1: template: multiple definition of template "a"'],
	[
		'{{genCA "x" 1}}',
		'template: t.html:1: function "genCA" is not available: keys and certificates cannot be generated while a page is rendered',
	],
	[`${'{{if 1}}'.repeat(101)}${'{{end}}'.repeat(101)}`, 'template: t.html:1: blocks nest deeper than 100'],
	// Runtime errors name the line, column, template and expression.
	['x\n  {{.text.y}}', 'template: t.html:2:5: executing "t.html" at <.text.y>: can\'t evaluate field y in type string'],
	['{{.none.y}}', 'template: t.html:1:3: executing "t.html" at <.none.y>: nil pointer evaluating interface {}.y'],
	[
		'{{.text 1}}',
		'template: t.html:1:3: executing "t.html" at <.text>: text has arguments but cannot be invoked as function',
	],
	['{{1 2}}', 'template: t.html:1:3: executing "t.html" at <1>: can\'t give argument to non-function'],
	['{{upper 3}}', 'template: t.html:1:9: executing "t.html" at <3>: wrong type for value; expected string; got int'],
	['{{upper nil}}', 'template: t.html:1:9: executing "t.html" at <nil>: invalid value; expected string'],
	['{{upper}}', 'template: t.html:1:3: executing "t.html" at <upper>: wrong number of args for upper: want 1 got 0'],
	[
		'{{index .list 3}}',
		'template: t.html:1:3: executing "t.html" at <index .list 3>: error calling index: index out of range: 3',
	],
	[
		'{{eq 1 "a"}}',
		'template: t.html:1:3: executing "t.html" at <eq 1 "a">: error calling eq: incompatible types for comparison',
	],
	[
		'{{eq .list .list}}',
		'template: t.html:1:3: executing "t.html" at <eq .list .list>: error calling eq: non-comparable type []interface {}',
	],
	['{{len 3}}', 'template: t.html:1:3: executing "t.html" at <len 3>: error calling len: len of type int'],
	[
		'{{range .text}}{{end}}',
		'template: t.html:1:9: executing "t.html" at <.text>: range can\'t iterate over a value of type string',
	],
	['{{template "x"}}', 'template: t.html:1:3: executing "t.html" at <template "x">: template "x" not defined'],
	[
		'{{define "T"}}{{.a.b}}{{end}}{{template "T" 1}}',
		'template: t.html:1:17: executing "T" at <.a>: can\'t evaluate field a in type int',
	],
	['{{fail "no"}}', 'template: t.html:1:3: executing "t.html" at <fail "no">: error calling fail: no'],
	[
		'{{div 1 0}}',
		'template: t.html:1:3: executing "t.html" at <div 1 0>: error calling div: runtime error: integer divide by zero',
	],
];
for (const [text, expected] of MISTAKES)
	mistakes(text.slice(0, 60), () => assert.is(templateFailureMessage(text), expected));
mistakes.run();

const abuse = suite('abuse of templates');
const BOUNDED: readonly string[] = [
	'{{range 1000000000}}{{end}}',
	'{{define "a"}}{{template "a"}}{{template "a"}}{{end}}{{template "a"}}',
	'{{repeat 999999999999 "x"}}',
	'{{until 99999999999}}',
	'{{untilStep 0 9223372036854775807 1}}',
	'{{seq 99999999}}',
	'{{indent 99999999999 "x"}}',
	'{{randAlphaNum 999999999}}',
	'{{printf "%999999999d" 1 | len}}{{fail "end"}}',
	'{{$s := "xxxxxxxxxx"}}{{range 60}}{{$s = cat $s $s}}{{end}}',
	'{{$s := "xxxxxxxxxx"}}{{range 60}}{{$s = replace "x" $s $s}}{{end}}',
	'{{$s := "xxxxxxxxxx"}}{{range 60}}{{$s = print $s $s}}{{end}}',
	'{{$l := list 1}}{{range 60}}{{$l = concat $l $l}}{{end}}',
	'{{$l := list 1}}{{range 60}}{{$l = list $l $l}}{{end}}{{$l}}',
	'{{$l := list 1}}{{range 60}}{{$l = list $l $l}}{{end}}{{toJson $l}}',
	'{{$l := list 1}}{{range 60}}{{$l = list $l $l}}{{end}}{{deepEqual $l (deepCopy $l)}}',
	'{{$l := list 1}}{{range 60}}{{$l = list $l $l}}{{end}}{{printf "%d" $l}}',
	'{{$l := list 1}}{{range 60}}{{$l = list $l $l}}{{end}}{{printf "%#v" $l}}',
	'{{$d := dict}}{{$_ := set $d "d" $d}}{{$d}}',
	'{{$d := dict}}{{$_ := set $d "d" $d}}{{toJson $d}}',
	'{{$d := dict}}{{$_ := set $d "d" $d}}{{deepCopy $d}}',
	'{{$d := dict}}{{$_ := set $d "d" $d}}{{$e := dict}}{{$_ := set $e "d" $e}}{{deepEqual $d $e}}',
	'{{$d := dict}}{{$_ := set $d "d" $d}}{{$e := dict}}{{$_ := set $e "d" $e}}{{merge $d $e}}',
	'{{regexMatch "(a{1000}){1000}" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}',
	'{{$s := repeat 1000000 "ab"}}{{range 1000}}{{$x := regexReplaceAll "a" $s "b"}}{{end}}',
	'{{range 300}}{{$x := repeat 10000000 "y"}}{{print $x}}{{end}}',
];
for (const text of BOUNDED) {
	abuse(text, () => {
		const startedAt = performance.now();
		assert.match(templateFailureMessage(text), /^template: t\.html/);
		const elapsedMs = performance.now() - startedAt;
		assert.ok(elapsedMs < 5000, `${Math.round(elapsedMs)} ms`);
	});
}
abuse('deep nesting in the text and in values is refused, not a crash', () => {
	assert.match(templateFailureMessage(`{{${'('.repeat(100_000)}1${')'.repeat(100_000)}}}`), /nest deeper/);
	assert.match(templateFailureMessage(`${'{{range 1}}'.repeat(5000)}`), /nest deeper/);
	assert.match(templateFailureMessage(`{{fromJson "${'['.repeat(100_000)}"}}`), /^template: t\.html/);
});
abuse('values have no way to JavaScript', () => {
	const names = [
		'constructor',
		'__proto__',
		'prototype',
		'toString',
		'hasOwnProperty',
		'length',
		'call',
		'size',
		'get',
	];
	for (const name of names) {
		for (const value of ['"s"', '1', '1.5', 'true', '(list 1)', '(now)', '(semver "1.0.0")']) {
			assert.match(
				templateFailureMessage(`{{$v := ${value}}}{{$v.${name}}}`),
				/can't evaluate field/,
				`${value}.${name}`,
			);
		}
		assert.is(render(`{{(dict).${name}}}`), '<no value>');
		assert.is(render(`{{(fromJson "{}").${name}}}`), '<no value>');
		assert.match(
			templateFailureMessage(`{{${name === 'get' || name === 'toString' || name === 'call' ? `${name}x` : name}}}`),
			/not defined/,
		);
	}
});
abuse('parsing takes time in proportion to the text', () => {
	for (const unit of [
		'{{1}}',
		'{{',
		'{',
		'{{/*',
		'{{"',
		'{{$x:=1}}',
		'{{- 1 -}} ',
		' {{- 1}}',
		'{{if 1}}{{else if 1}}',
	]) {
		const text = unit.repeat(200_000 / unit.length);
		const startedAt = performance.now();
		templateFailureMessage(text);
		assert.ok(performance.now() - startedAt < 5000, `${unit}: ${performance.now() - startedAt} ms`);
	}
});
abuse.run();
