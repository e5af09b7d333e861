/** Global option `persist_config`: determines whether changes through the Admin API are saved. */
import type { GlobalOption } from '../contract/option.ts';

/** Global option; sets `settings.persist_config` in the document. */
export const persistConfig: GlobalOption = {
	id: 'persist_config',
	names: { configfile: ['persist_config'], compatfile: ['persist_config'] },
	usage: 'persist_config off',
	summary: 'Does not save changes made through the Admin API.',
	documentation: [
		`By default, every change made through the Admin API is saved, secrets included, in a file that only the server's user can read, for`,
		'`svc run --resume`. With `off`, changes are not saved.',
		'',
		'```',
		'{',
		'	persist_config off',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		const [word, ...extraWords] = line.words.slice(1);
		cx.noBlock(line);
		if (word && extraWords.length === 0 && word.text === 'off') {
			settings.persist_config = false;
			return;
		}
		cx.problem('error', 'option/not-off', (word ?? line.words[0]!).span, "persist_config must be 'off'", {
			hint: 'Leave the option out to save changes.',
		});
	},
	schema: { const: false, description: 'Does not save changes made through the Admin API.' },
	startup: false,
};
