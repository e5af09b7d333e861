/** Several files with errors: each error is reported once and at its place, without errors that only follow from it. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseInMemory } from './memory-config.ts';

const MAIN = `{
	debug
}
import broken/snippets
let port 8080
let port 8081
@global path /x
:{let.port}, other.example,third.example {
	import broken/site
	import brokn/site
	use secure max_aeg=1
	respond {let.prot}
	handle { respond hi
	}
	handle
	{
		import broken/lines 1
	}
	import broken/lines
}
respond lost
reverse_proxy lost too
{
	admin off
}
`;

const SNIPPETS = `(secure) max_age {
	header A {param.max_age}
	header B <<<END
		text of it
		END
	header C {param.max_agee}
}
(secure) {
}
(loop) {
	import loop
}
&(route) {
	respond hi }
&(route) {
}
&(bare)
`;

const SITE = `import loop
log {
	output stdout
	{
		a
	}
} oops
handle {} 
respond <<A B
header <<END
	two
  END
let x 1
let x 2
`;

const LINES = `respond {args[1]}
header {args.0}
route {
	handle {
		respond a
}
respond b
`;

const recovery = suite('recovery');
recovery('mistakes of four files are all reported, each once, at their places', () => {
	const { places, outline } = parseInMemory({
		main: MAIN,
		'broken/snippets': SNIPPETS,
		'broken/site': SITE,
		'broken/lines': LINES,
	});
	assert.equal(places, [
		'error syntax/heredoc-marker broken/snippets:3:11',
		'error snippet/defined-twice broken/snippets:8:1',
		'error route/defined-twice broken/snippets:15:1',
		'error syntax/block-expected broken/snippets:17:1',
		'error let/defined-twice main:6:5',
		'error syntax/matcher-outside-site main:7:1',
		'error syntax/comma-in-address main:8:14',
		'error import/cycle broken/snippets:11:9',
		'error syntax/open-on-new-line broken/site:4:2',
		'error syntax/text-after-close broken/site:7:1',
		'error syntax/empty-braces broken/site:8:8',
		'error syntax/heredoc-indentation broken/site:11:1',
		'error let/defined-twice broken/site:14:5',
		'error import/not-found main:10:9',
		'error snippet/unknown-parameter broken/snippets:6:11',
		'error snippet/unknown-parameter main:11:13',
		'error let/unknown main:12:10',
		'error syntax/text-after-open main:13:11',
		'error syntax/open-on-new-line main:16:2',
		'error import/no-such-argument broken/lines:1:9',
		'error import/old-argument broken/lines:2:8',
		'error syntax/unclosed-block broken/lines:4:9',
		'error syntax/directive-outside-site main:21:1',
	]);
	assert.ok(outline.includes('respond b'), 'what stands after a mistake is read');
});
recovery('the tree holds what could be read', () => {
	const { outline, messages } = parseInMemory(
		'a.com {\n\thandle {\n\t\trespond 1\n\n\trespond 2 }\n\trespond 3\n}\nb.com {\n\trespond 4\n}\n',
	);
	assert.is(messages.length, 1, messages.join('\n'));
	for (const number of [1, 2, 3, 4]) assert.ok(outline.includes(`respond ${number}`), outline);
});
recovery('a structural mistake in a snippet is reported once, however often it is used', () => {
	const snippet = '(x) {\n\thandle {\n\t\trespond a }\n}\n';
	assert.equal(parseInMemory(`${snippet}a.com {\n\timport x\n\timport x\n}\n`).places, [
		'error syntax/close-after-words main:3:13',
	]);
});
recovery('a snippet that can be a site but is used as directives is reported once', () => {
	const text = '(x) {\n\ta.com\n\t{\n\t\trespond a\n\t}\n}\n';
	assert.equal(parseInMemory(`${text}import x\n`).places, []);
	const both = 'b.com {\n\timport x\n}\nc.com {\n\timport x\n}\n';
	assert.equal(parseInMemory(`${text}${both}`).places, ['error syntax/open-on-new-line main:3:2']);
});
recovery.run();
