/** Directives of other servers: each suggested replacement exists in both languages, and none is our own directive. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { registryOf } from '../../../../compiler/lower/registry.ts';
import {
	FOREIGN_PROXY_WORDS,
	FOREIGN_WORDS,
	foreignHint,
} from '../../../../compiler/modules/contract/foreign-words.ts';

const words = suite('directives of other servers');

for (const dialect of ['configfile', 'compatfile'] as const) {
	words(`each suggestion exists in a ${dialect}`, () => {
		const { directives, options } = registryOf(dialect);
		for (const [word, { ourWord: ours, advice: how }] of FOREIGN_WORDS) {
			if (ours !== undefined && ours !== 'import')
				assert.ok(directives.has(ours) || options.has(ours), `${word}: ${ours}`);
			assert.match(how, /^[A-Z].*\.$/, word);
			// `upstream` is a top-level keyword of one language, where foreign directives are not looked up.
			if (word !== 'upstream') assert.not(directives.has(word), `${word} is our own directive`);
			assert.is(word, word.toLowerCase());
		}
	});
}

words('case and a final semicolon are ignored, and unknown directives get no hint', () => {
	assert.is(
		foreignHint('ProxyPass;'),
		'`ProxyPass` of Apache is `reverse_proxy` here. Write `reverse_proxy /path/* 127.0.0.1:9000`.',
	);
	assert.is(foreignHint('server', FOREIGN_PROXY_WORDS), '`server` of nginx is `to` here. Write `to ADDRESS…`.');
	for (const word of ['nonsense', 'constructor', '', ';']) assert.is(foreignHint(word), undefined);
});

words.run();
