; An author writes, and looks at the work in a session that has not seen how it came about, until that
; second look finds nothing to change. After five rounds it fails: what was written is in `raymond show`.
;
;   raymond run workflows/self-review --input "A haiku about durable workflows"

(workflow self-review
  (metadata
    (label "Self-review")
    (description "Writes a text and revises it until a second look has nothing to say.")
    (max-iterations 5))

  (roles
    (author :agent-kind "claude-code")
    (second-look :agent-kind "claude-code"))

  (state draft
    (action
      (send-prompt
        :agent author
        :template "Write what is asked for here. Reply with the text alone.\n\n~a"
        :args (@context/input)
        :request-id draft)
      (await (transcript-response :request-id draft))))

  (state review
    (loop
      (action
        (send-prompt
          :agent second-look
          :template "This was asked for:\n\n~a\n\nThis was written:\n\n~a\n\nIf nothing has to be changed, reply APPROVED and nothing else. Otherwise list what has to be changed, the most important first."
          :args (@context/input (feedback author))
          :request-id review)
        (await (transcript-response :request-id review)))

      (branch
        (on (matches (response review) "\\A\\W*APPROVED\\b")
            (goto done))
        (otherwise
          (action
            (send-prompt
              :agent author
              :template "Revise your text. Reply with the text alone.\n\n~a"
              :args ((response review))
              :request-id revision)
            (await (transcript-response :request-id revision)))))))

  (state done
    (terminal :result (feedback author))))
