/** Errors in a Compatfile contain the phrases of Caddy's messages, which users search for. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../compiler/compiler.ts';
import { memoryReader } from './syntax/memory-config.ts';

function errorMessages(text: string): string[] {
	const { diagnostics } = compile(
		{ format: 'compatfile', text, name: 'Compatfile', path: '/work/Compatfile' },
		memoryReader({ main: '' }),
	);
	return diagnostics
		.filter(({ severity }) => severity === 'error')
		.map(({ message, hint }) => (hint === undefined ? message : `${message}\n${hint}`));
}

/** For each fact, pairs of a file and a phrase that one of its errors must contain. */
const FACTS: { readonly [fact: string]: readonly (readonly [file: string, message: string])[] } = {
	'a duplicate address': [
		[':8080 {\n}\n:8080 {\n}\n', 'ambiguous site definition: :8080'],
		['http://localhost:8080 {\n}\nhttp://localhost:8080 {\n}\n', 'ambiguous site definition'],
	],
	'WebSocket schemes': [
		['wss://localhost', 'the scheme wss:// is only supported in browsers; use https:// instead'],
		['localhost, wss://localhost {\n}\n', 'the scheme wss:// is only supported in browsers; use https:// instead'],
		['ws://localhost', 'the scheme ws:// is only supported in browsers; use http:// instead'],
		[':8080\nreverse_proxy ws://localhost', 'the scheme ws:// is only supported in browsers; use http:// instead'],
	],
	'unknown schemes': [
		['someInvalidPrefix://localhost', 'unsupported URL scheme someinvalidprefix://'],
		[':8080\nreverse_proxy someInvalidPrefix://localhost', 'unsupported URL scheme someinvalidprefix://'],
		['h2c://localhost', 'unsupported URL scheme h2c://'],
		['foo://example.com', 'unsupported URL scheme foo://'],
		[':-1', 'port -1 is out of range'],
	],
	'directives in place of sites': [
		[
			'\nhandle {\n\trespond x\n}\n',
			"Compatfile:2: parsed 'handle' as a site address, but it is a known directive; directives must appear in a site block",
		],
		[
			'\nreverse_proxy localhost:9000 localhost:9001 {\n}\n',
			"Compatfile:2: parsed 'reverse_proxy' as a site address, but it is a known directive; directives must appear in a site block",
		],
		[
			'@foo {\n\tpath /x\n}\n:8080 {\n}\n',
			'request matchers may not be defined globally, they must be in a site block; found @foo, at Compatfile:1',
		],
	],
	'server options': [
		[
			'{\n\tservers {\n\t\tsrv0 {\n\t\t}\n\t}\n}\n',
			"parsing compatfile tokens for 'servers': unrecognized servers option 'srv0', at Compatfile:3",
		],
	],
	'certificates of an authority': [
		[
			'{\n\tpki {\n\t\tca internal {\n\t\t\tintermediate_lifetime 7d\n\t\t}\n\t}\n}\n:8080 {\n\tacme_server {\n\t\tca internal\n\t\tlifetime 7d\n\t}\n}\n',
			'should be less than intermediate certificate lifetime',
		],
		[':8080 {\n\tacme_server {\n\t\tchallenges http-02\n\t}\n}\n', 'acme challenge "http-02" is not supported'],
		[':8080 {\n\tacme_server {\n\t\tnonsense\n\t}\n}\n', 'unrecognized ACME server directive: nonsense'],
		[
			':8080 {\n\tacme_server {\n\t\tallow {\n\t\t\tnonsense\n\t\t}\n\t}\n}\n',
			"unrecognized 'allow' subdirective: nonsense",
		],
		[':8080 {\n\tacme_server {\n\t\tresolvers\n\t}\n}\n', 'must specify at least one resolver address'],
	],
	'named routes': [
		[':8080\ninvoke foo', "cannot invoke named route 'foo', which was not defined"],
		['&(a) {\n\tinvoke foo\n}\n:8080 {\n\tinvoke a\n}\n', "cannot invoke named route 'foo', which was not defined"],
		['&(a) {\n\tabort\n}\n&(a) {\n\tabort\n}\n', 'cannot have duplicate named_routes: a'],
	],
	imports: [
		[
			'(import1) {\n\timport import2\n}\n(import2) {\n\timport import1\n}\n:8080 {\n\timport import1\n}\n',
			'a cycle of imports exists between Compatfile:import2 and Compatfile:import1',
		],
		['(site) {\n\t{block}\n}\n:8080 {\n\timport site {\n\t\t{\n\t\t}\n\t}\n}\n', 'anonymous blocks are not supported'],
		[
			'(proxied) {\n\treverse_proxy localhost:1 {\n\t\t{block}\n\t}\n}\n:8080 {\n\timport proxied {\n\t\tthis_is_nonsense\n\t}\n}\n',
			"parsing compatfile tokens for 'reverse_proxy': unrecognized subdirective this_is_nonsense",
		],
	],
	heredocs: [
		[
			':8080 {\n\n\n\trespond <<END!\n\tx\n\tEND!\n}\n',
			"heredoc marker on line #4 must contain only alphanumeric characters, dashes and underscores; got 'END!'",
		],
		[
			':8080 {\n\n\n\trespond <<END\n\tx\n  END\n}\n',
			'mismatched leading whitespace in heredoc <<END on line #5 [\tx], expected whitespace [  ] to match the closing marker',
		],
		[
			':8080 {\n\n\n\trespond <<<END\n\tx\n\tEND\n}\n',
			"too many '<' for heredoc on line #4; only use two, for example <<END",
		],
	],
	'response rules': [
		[
			':8080 {\n\treverse_proxy localhost:1 {\n\t\thandle_response header Foo {\n\t\t}\n\t}\n}\n',
			"too many arguments for 'handle_response': only a single response matcher name is allowed, but got: [header Foo]",
		],
	],
	'unknown words': [
		[':8080\nrespnd x', 'Compatfile:2: unrecognized directive: respnd'],
		[
			':8080\nb.example',
			'Compatfile:2: unrecognized directive: b.example\nDid you mean to define a second site? If so, you must use curly braces around each site to separate their configurations.',
		],
		[
			':8080 {\n\thandle {\n\t\trespnd x\n\t}\n}\n',
			'unrecognized directive: respnd - are you sure your Compatfile structure (nesting and braces) is correct?',
		],
		['{\n\tdebgu\n}\n', 'Compatfile:2: unrecognized global option: debgu'],
		[':8080\nrespond @x y', 'unrecognized matcher name: @x'],
		[':8080\n@x nothing\nrespond @x y', "getting matcher module 'nothing'"],
		[':8080\nredir https://x 200', "Redir code not in the 3xx range or 401: '200'"],
		[':8080\nredir https://x sometimes', "Not a supported redir code type or not valid integer: 'sometimes'"],
		[':8080\nhandle_path x {\n}\n', "path matcher must begin with '/', got x"],
		[':8080\nuri turn x', "unrecognized URI manipulation 'turn'"],
		[':8080\nuri path_regexp "" x', 'path_regexp find cannot be empty'],
		[':8080\nuri replace a b c', 'limit must be an integer; invalid: c'],
		[':8080\nuri query a b {\n\tc d\n}\n', 'Cannot specify uri query rewrites in both argument and block'],
		[':8080\nheader a b {\n\tc d\n}\n', 'cannot specify headers in both arguments and block'],
		[':8080\nrequest_header ?a b', "a: the default header modifier ('?') can only be used on response headers"],
		[':8080\nroute {\n\tlog\n}\n', 'log directive returned something other than an HTTP route or subroute'],
		[':8080\nhandle {\n\tlog\n}\n', "directive 'log' is not an ordered HTTP handler, so it cannot be used here"],
		[':8080\nhandle_errors 4 {\n}\n', "bad status value '4'"],
		[':8080\nrespond a 200 {\n\tbody b\n}\n', 'body already specified'],
		[':8080\n@m host a a\nrespond @m x', 'host at index 0 is repeated at index 1: a'],
		[':8080\n@m header !\nrespond @m x', 'malformed header matcher: must have field name following ! character'],
		[
			':8080\n@m header !A b\nrespond @m x',
			'malformed header matcher: null matching headers cannot have a field value',
		],
		[':8080\n@m header A\nrespond @m x', 'malformed header matcher: expected both field and value'],
		[':8080\n@m remote_ip forwarded 1.2.3.4\nrespond @m x', 'client_ip'],
	],
	'import chains': [
		[
			'(s) {\n\trespond @x y\n}\n:8080 {\n\timport s\n}\n',
			"unrecognized matcher name: @x, at Compatfile:2 import chain ['Compatfile:5 (import s)']",
		],
	],
};

const facts = suite('load errors');

for (const [fact, table] of Object.entries(FACTS)) {
	facts(fact, () => {
		for (const [file, message] of table) {
			const messages = errorMessages(file);
			assert.ok(
				messages.some(text => text.includes(message)),
				`${JSON.stringify(file)}\nwants ${message}\ngot   ${messages.join('\n      ')}`,
			);
		}
	});
}

facts.run();
