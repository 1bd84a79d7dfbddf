"""What a running pipeline shows over time: windows of counts that add up, and alarms with a stated rate. Knows arrays, never Docs."""
