-- The language server of svc in Neovim 0.7 and later. Settings: g:svc_path, the binary; g:svc_language_server, 0 for none.
local M = {}

-- Starts the language server for the current buffer, or uses the one that runs for its folder.
function M.start()
	local binary = vim.g.svc_path or 'svc'
	if vim.fn.executable(binary) == 0 then
		local text = binary .. ' is not a program. Install svc, or set g:svc_path to the path of its binary.'
		local notify = vim.notify_once or vim.notify
		notify(text, vim.log.levels.WARN)
		return
	end
	local folder = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(0), ':p:h')
	local configuration = { name = 'svc', cmd = { binary, 'language-server' }, root_dir = folder }
	if vim.lsp.start then
		vim.lsp.start(configuration)
		return
	end
	-- Neovim 0.7 has the parts of `vim.lsp.start`.
	M.clients = M.clients or {}
	local known = M.clients[folder]
	if not (known and vim.lsp.get_client_by_id(known)) then
		known = vim.lsp.start_client(configuration)
		M.clients[folder] = known
	end
	vim.lsp.buf_attach_client(0, known)
end

-- Shows text in a window of its own.
local function show(text)
	vim.cmd('botright new')
	vim.bo.buftype = 'nofile'
	vim.bo.bufhidden = 'wipe'
	vim.bo.swapfile = false
	vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(text, '\n'))
end

-- The lens `Explain a request` asks for the request: a URL, after a method if it is not GET.
vim.lsp.commands['svc.explainRequest'] = function(command, context)
	local client = vim.lsp.get_client_by_id(context.client_id)
	vim.ui.input({ prompt = 'Request: ', default = command.arguments[2] }, function(request)
		if not request then
			return
		end
		local params = { command = command.command, arguments = { command.arguments[1], request, true } }
		client.request('workspace/executeCommand', params, function(problem, result)
			if problem then
				vim.notify(problem.message, vim.log.levels.ERROR)
			else
				show(result.text)
			end
		end)
	end)
end

return M
