" Configfiles and Caddyfiles, by the names that svc itself goes by.
autocmd BufRead,BufNewFile Configfile,*.configfile setfiletype configfile
autocmd BufRead,BufNewFile Caddyfile,Compatfile,*.caddyfile,*.compatfile setfiletype caddyfile
