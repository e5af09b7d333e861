/** `persist_config`: whether what the Admin API changes is saved. */
import type { GlobalOption } from './option.ts';

/** `settings.persist_config`. */
export const persistConfig: GlobalOption = {
	id: 'persist_config',
	names: { configfile: ['persist_config'], compatfile: ['persist_config'] },
	usage: 'persist_config off',
	summary: 'Keeps no copy of the configuration that the Admin API changed.',
	documentation: [
		'Every change that the Admin API makes is saved, secrets included, in a file that only the user of the server may read, for',
		'`svc run --resume`. With `off` none is.',
		'',
		'```',
		'{',
		'	persist_config off',
		'}',
		'```',
	].join('\n'),
	lower: (line, settings, cx) => {
		const [word, ...more] = line.words.slice(1);
		cx.noBlock(line);
		if (word && more.length === 0 && word.text === 'off') {
			settings.persist_config = false;
			return;
		}
		cx.problem('error', 'option/not-off', (word ?? line.words[0]!).span, "persist_config must be 'off'", {
			hint: 'Leave the option out to have changes saved.',
		});
	},
	schema: { const: false, description: 'Changes made by the Admin API are not saved.' },
	startup: false,
};
