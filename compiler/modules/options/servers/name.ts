/** `name` inside `servers`: what logs and metrics call a listener. */
import type { ServerOption } from './server-option.ts';

/** `settings.servers[].name`. */
export const name: ServerOption = {
	name: 'name',
	usage: 'name <name>',
	summary:
		'What the label `server` of metrics says instead of the address; only in a block for one listener. It is as it was at start.',
	lower: (line, args, { server, settings, listener }, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, name.usage)) return;
		const { text, span } = args[0]!;
		if (!listener) {
			cx.problem('error', 'servers/name', span, 'cannot set a name for a server without a listener address', {
				hint: 'Write the address behind `servers`: servers :8080 { name … }',
			});
			return;
		}
		const others = (settings.servers as readonly { readonly name?: string }[] | undefined) ?? [];
		if (others.some(other => other.name === text)) {
			cx.problem('error', 'servers/name', span, `cannot use duplicate server name '${text}'`);
			return;
		}
		server.name = text;
	},
	schema: { name: { type: 'string', minLength: 1, description: 'Name of the listener in metrics.' } },
};
