/** `name` inside `servers`: the name of a listener in logs and metrics. */
import type { ServerOption } from '../../contract/server-option.ts';

/** Option inside `servers`; sets `settings.servers[].name` in the document. */
export const name: ServerOption = {
	name: 'name',
	usage: 'name <name>',
	summary:
		'Value of the label `server` of metrics, instead of the address; only in a block for one listener. It is fixed at start.',
	lower: (line, args, { server, settings, listener }, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, name.usage)) return;
		const { text, span } = args[0]!;
		if (!listener) {
			cx.problem('error', 'servers/name', span, 'cannot set a name for a server without a listener address', {
				hint: 'Write the address after `servers`: servers :8080 { name … }',
			});
			return;
		}
		const otherServers = (settings.servers as readonly { readonly name?: string }[] | undefined) ?? [];
		if (otherServers.some(other => other.name === text)) {
			cx.problem('error', 'servers/name', span, `cannot use duplicate server name '${text}'`);
			return;
		}
		server.name = text;
	},
	schema: { name: { type: 'string', minLength: 1, description: 'Name of the listener in metrics.' } },
};
